import pytest

from supermodel.errors import SupermodelError
from supermodel.spec.regression import regression_of

TABLE = "y,x,f\n" + "\n".join(f"{1.5 * i + (i * 7 % 5)},{i},{'ab'[i % 2]}" for i in range(12)) + "\n"


def written(folder, text):
    (folder / "table.csv").write_text(TABLE)
    (folder / "file.toml").write_text(text)
    return folder / "file.toml"


def test_a_file_is_run(tmp_path):
    path = written(
        tmp_path,
        '[regression]\nformula = "y ~ x + f"\ndata = "table.csv"\nhypothesis = "x > 0"\nmodels = ["1", "x"]\n'
        'rscale = { continuous = "wide" }\n[run]\nseed = 3\n',
    )
    result = regression_of(path).run()
    assert result.names == ("1", "x") and result.seed == 3 and len(result.hypotheses) == 1
    assert "r = 0.5 continuous" in result.priors


def test_priors_are_texts_and_kinds_are_two(tmp_path):
    text = '[regression]\nformula = "y ~ x"\ndata = "table.csv"\n'
    found = regression_of(written(tmp_path, text + 'priors = { x = "Normal(0, 2)" }\n'))
    assert float(found.arguments["priors"]["x"].scale) == 2.0
    anova = regression_of(written(tmp_path, text.replace("y ~ x", "y ~ f") + 'kind = "anova"\n')).run()
    assert anova.kind == "anova" and anova.names == ("1", "f")


def test_a_file_of_models_is_no_regression(tmp_path):
    assert regression_of(written(tmp_path, "[data]\nfile = 'table.csv'\n")) is None
    assert regression_of(tmp_path / "file.py") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('formula = "y ~ x"\n', "'data' is missing"),
        ('formula = "y ~ x"\ndata = "table.csv"\nfamly = "t"\n', "line 4.*unknown key 'famly'"),
        ('formula = "y ~ x"\ndata = "table.csv"\npriors = { x = "Nrmal(0, 1)" }\n', "Nrmal"),
        ('formula = "y ~ x"\ndata = "table.csv"\nkind = "t"\n', "regression or anova"),
        ('formula = "y ~ x"\ndata = "table.csv"\nkind = "anova"\nfamily = "student"\n', "an anova has no `family`"),
        ('formula = "y ~ os.system(x)"\ndata = "table.csv"\n', "calls 'os.system'"),
    ],
)
def test_mistakes_are_told(text, words, tmp_path):
    with pytest.raises(SupermodelError, match=words):
        regression_of(written(tmp_path, "[regression]\n" + text)).run()


def test_a_data_root_confines_the_table(tmp_path):
    (tmp_path / "inner").mkdir()
    path = written(tmp_path, '[regression]\nformula = "y ~ x"\ndata = "table.csv"\n')
    assert regression_of(path, tmp_path).run().names == ("1", "x")
    with pytest.raises(SupermodelError, match="not inside the data root"):
        regression_of(path, tmp_path / "inner")

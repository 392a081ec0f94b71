// Search in a site that is opened from disk: browsers start no Worker from file:, so its script runs in a hidden frame,
// whose window hears and sends messages as a worker does. Over http the browser's own Worker is used.
// (The theme's `offline` plugin would fetch a stand-in from elsewhere if none with "iframe-worker" in its name were given.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.window = new Promise((ready, failed) => {
        frame.onload = () => {
          const inner = frame.contentWindow, script = inner.document.createElement("script");
          inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));  // what the worker says
          script.onload = () => ready(inner);
          script.onerror = failed;
          script.src = address;
          inner.document.body.appendChild(script);
        };
      });
      document.body.appendChild(frame);
    }
    postMessage(data) {  // what it is told
      this.window.then((inner) => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }
    terminate() { this.window.then((inner) => inner.frameElement.remove()); }
  };
}

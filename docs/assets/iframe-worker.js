// Search where the site is opened from a folder: a browser starts no worker from file://, so a hidden frame does its work.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage && this.onmessage(new MessageEvent("message", { data })));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onload = () => {
        this.waiting.forEach((data) => this.tell(data));
        this.waiting = null;
      };
      script.onerror = () => this.onerror && this.onerror(new Event("error"));
      inside.document.body.append(script);
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.tell(data);
    }
    tell(data) {
      this.frame.contentWindow.onmessage(new MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}

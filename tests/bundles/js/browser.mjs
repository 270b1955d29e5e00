// Opens a page of this folder in headless Chromium and prints what it computed as JSON:
//
//   node --experimental-websocket browser.mjs --modules node_modules --bundle FOLDER [--page page.html] [--name minilm] [--webgpu]
//       [--query '{"key": "value"}'] [--folders '{"/job/": "FOLDER"}'] [--screenshot FILE.png] [--browser chromium]
//
// The page finds the bundle under its name, and other folders where --folders says. With --webgpu it has a GPU, in software. Everything comes from a server on localhost that this script runs: the page, the engine's files, and the bundle.
import { spawn } from 'node:child_process';
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    modules: { type: 'string' },
    bundle: { type: 'string' },
    page: { type: 'string', default: 'page.html' },
    name: { type: 'string', default: 'minilm' },
    webgpu: { type: 'boolean', default: false },
    query: { type: 'string', default: '{}' },
    folders: { type: 'string', default: '{}' },
    screenshot: { type: 'string' },
    browser: { type: 'string', default: 'chromium' },
    seconds: { type: 'string', default: '180' },
  },
});
const here = dirname(fileURLToPath(import.meta.url));
const FOLDERS = {
  '/lib/': join(options.modules, '@huggingface/transformers/dist'),
  '/ort/': join(options.modules, 'onnxruntime-web/dist'),
  '/page/': here,
  ...(options.bundle ? { [`/models/${options.name}/`]: options.bundle } : {}),
  ...JSON.parse(options.folders),
};
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json' };

const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
  const prefix = Object.keys(FOLDERS).find((each) => path.startsWith(each));
  const file = path === '/' ? join(here, options.page) : prefix && join(FOLDERS[prefix], path.slice(prefix.length));
  if (!file || !existsSync(file) || !statSync(file).isFile()) {
    response.writeHead(404).end();
    return;
  }
  const headers = { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'content-length': statSync(file).size };
  response.writeHead(200, headers);
  if (request.method === 'HEAD') response.end();
  else createReadStream(file).pipe(response);
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const address = `http://127.0.0.1:${server.address().port}/?${new URLSearchParams(JSON.parse(options.query))}`;

const GPU = options.webgpu ? ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'] : ['--disable-gpu'];
const profile = mkdtempSync(join(tmpdir(), 'argosy-browser-'));
const browser = spawn(
  options.browser,
  ['--headless=new', '--no-sandbox', ...GPU, '--disable-dev-shm-usage', '--no-first-run', '--hide-scrollbars', '--remote-debugging-port=0',
    `--user-data-dir=${profile}`, '--window-size=900,560', 'about:blank'],
  { stdio: 'ignore' },
);

const pause = (ms) => new Promise((after) => setTimeout(after, ms));
const deadline = Date.now() + 1000 * Number(options.seconds);

async function until(what, attempt) {
  while (Date.now() < deadline) {
    const found = await attempt().catch(() => undefined);
    if (found !== undefined) return found;
    await pause(200);
  }
  throw new Error(`no ${what} within ${options.seconds} seconds`);
}

// The browser's debugging protocol: numbered calls over a socket.
class Page {
  #next = 1;
  #open = new Map();
  constructor(socket) {
    this.socket = socket;
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      const call = this.#open.get(message.id);
      this.#open.delete(message.id);
      if (message.error) call?.reject(new Error(message.error.message));
      else call?.resolve(message.result);
    };
  }
  call(method, params = {}) {
    return new Promise((resolve, reject) => {
      this.#open.set(this.#next, { resolve, reject });
      this.socket.send(JSON.stringify({ id: this.#next++, method, params }));
    });
  }
}

let code = 0;
try {
  const port = await until('browser', async () => Number(readFileSync(join(profile, 'DevToolsActivePort'), 'utf8').split('\n')[0]) || undefined);
  const target = await until('page', async () => {
    const pages = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
    return pages.find((each) => each.type === 'page');
  });
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await new Promise((ready, failed) => { socket.onopen = ready; socket.onerror = failed; });
  const page = new Page(socket);
  await page.call('Page.enable');
  await page.call('Page.navigate', { url: address });
  const result = await until('result', async () => {
    const { result } = await page.call('Runtime.evaluate', { expression: 'window.result', returnByValue: true });
    return result.value;
  });
  if (options.screenshot) {
    const { data } = await page.call('Page.captureScreenshot', { format: 'png' });
    writeFileSync(options.screenshot, Buffer.from(data, 'base64'));
  }
  console.log(JSON.stringify(result));
  code = result.error ? 1 : 0;
  socket.close();
} catch (error) {
  console.error(String(error));
  code = 1;
} finally {
  browser.kill();
  server.close();
  await pause(300);
  rmSync(profile, { recursive: true, force: true });
}
process.exit(code);

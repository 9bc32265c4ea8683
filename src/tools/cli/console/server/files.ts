/** The files of the page. They are listed once, so that no path of a request reaches the file system. */
import { createReadStream, readdirSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { extname, join, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.gz': 'application/gzip',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
}

/** The page loads nothing from elsewhere, and runs no inline script or style. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Workers compile WebAssembly, which a policy with `script-src` forbids unless it is unsafe elsewhere. */
const workerPolicy = "connect-src 'self'"

export class PageFiles {
  readonly #folder: string
  /** Path of a URL to path of a file. */
  readonly #paths = new Map<string, string>()

  /** @throws the error of the system if the folder cannot be read */
  constructor(folder: string) {
    this.#folder = folder
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      this.#paths.set(
        `/${path
          .slice(folder.length + 1)
          .split(sep)
          .join('/')}`,
        path,
      )
    }
  }

  has(path: string): boolean {
    return this.#paths.has(withIndex(path))
  }

  /** Sends a file that exists. */
  async send(path: string, response: ServerResponse): Promise<void> {
    const file = this.#paths.get(withIndex(path)) ?? join(this.#folder, 'index.html')
    const isWorker = /-worker\.js$/.test(file)
    response.writeHead(200, {
      'content-type': types[extname(file)] ?? 'application/octet-stream',
      'content-security-policy': isWorker ? workerPolicy : pagePolicy,
    })
    await pipeline(createReadStream(file), response)
  }
}

const withIndex = (path: string): string => (path === '/' ? '/index.html' : path)

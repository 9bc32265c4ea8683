/** Serves files of the repository, and documents that a test makes, to a browser. */
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'

export const root = join(import.meta.dirname, '..', '..')

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.mjs': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
}

export interface FilesServer {
  readonly url: string
  /** Paths that were asked for and not found. */
  readonly missing: readonly string[]
  close(): Promise<void>
}

/** `documents`: text by path, ahead of files below `folder`. */
export async function serveFiles(
  folder: string,
  documents: Readonly<Record<string, string>> = {},
): Promise<FilesServer> {
  const missing: string[] = []
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const file = join(folder, pathname.endsWith('/') ? `${pathname}index.html` : pathname)
    const document = documents[pathname]
    const isThere = document !== undefined || (existsSync(file) && statSync(file).isFile())
    if (!isThere && pathname !== '/favicon.ico') missing.push(pathname)
    const type = types[extname(file)] ?? 'application/octet-stream'
    const coding = isThere && extname(pathname) === '.br' ? { 'content-encoding': 'br' } : {}
    response.writeHead(isThere ? 200 : 404, { 'content-type': type, ...coding })
    response.end(document ?? (isThere ? readFileSync(file) : ''))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    missing,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

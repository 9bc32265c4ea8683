/** The part of a kubelet that clients see: the logs of containers, which the API server asks for. */
import { createServer, type Server } from 'node:https'
import { Authority } from '../support/certificates.ts'
import { nodeAddress } from './network.ts'

interface Line {
  readonly time: number
  readonly text: string
}

/** What a container wrote, line by line, with the time of each line. */
export class ContainerLog {
  readonly #lines: Line[] = []
  #rest = ''

  add(chunk: Buffer): void {
    const parts = (this.#rest + chunk.toString()).split('\n')
    this.#rest = parts.pop() ?? ''
    const time = Date.now()
    for (const text of parts) this.#lines.push({ time, text })
  }

  /** The lines since a time in milliseconds. */
  since(time: number): string {
    return this.#lines
      .filter((line) => line.time >= time)
      .map((line) => `${line.text}\n`)
      .join('')
  }
}

/** Serves `GET /containerLogs/NAMESPACE/POD/CONTAINER`; resolves with the server and its port. */
export async function startKubelet(
  logOf: (namespace: string, pod: string) => ContainerLog | undefined,
): Promise<{ server: Server; port: number }> {
  const authority = new Authority()
  const { certificate: cert, key } = authority.issue([nodeAddress])
  authority.dispose()
  const server = createServer({ cert, key }, (request, response) => {
    const url = new URL(request.url ?? '/', 'https://kubelet')
    const [, what, namespace = '', pod = ''] = url.pathname.split('/')
    const log = what === 'containerLogs' ? logOf(namespace, pod) : undefined
    if (log === undefined) {
      response.writeHead(404).end()
      return
    }
    const sinceTime = url.searchParams.get('sinceTime')
    const sinceSeconds = url.searchParams.get('sinceSeconds')
    const start = sinceTime === null ? 0 : Date.parse(sinceTime)
    const earliest = sinceSeconds === null ? start : Date.now() - Number(sinceSeconds) * 1000
    response.writeHead(200, { 'content-type': 'text/plain' }).end(log.since(earliest))
  })
  await new Promise<void>((resolve) => server.listen(0, nodeAddress, resolve))
  const address = server.address()
  return { server, port: typeof address === 'object' ? (address?.port ?? 0) : 0 }
}

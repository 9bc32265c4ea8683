import type { Transport } from './transport.ts'

/** Bytes copied both ways between two connections that have left HTTP (RFC 9110 7.8). */
export class Tunnel {
  readonly #client: Transport
  readonly #upstream: Transport
  /** Bytes from the client and to it. */
  bytesUp = 0
  bytesDown = 0

  constructor(client: Transport, upstream: Transport) {
    this.#client = client
    this.#upstream = upstream
  }

  fromClient(bytes: Buffer, start: number, end: number): void {
    this.bytesUp += end - start
    this.#upstream.appendBytes(bytes, start, end)
    if (!this.#upstream.flush()) this.#client.pause()
  }

  fromUpstream(bytes: Buffer, start: number, end: number): void {
    this.bytesDown += end - start
    this.#client.appendBytes(bytes, start, end)
    if (!this.#client.flush()) this.#upstream.pause()
  }

  /** One side has ended its stream: so does the other direction's end. */
  clientEnded(): void {
    this.#upstream.end()
  }

  upstreamEnded(): void {
    this.#client.end()
  }

  clientDrained(): void {
    this.#upstream.resume()
  }

  upstreamDrained(): void {
    this.#client.resume()
  }
}

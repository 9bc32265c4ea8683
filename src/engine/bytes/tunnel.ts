/** One end of a tunnel: a connection of HTTP/1.1 that was upgraded, or a stream of HTTP/2. */
export interface TunnelEnd {
  appendBytes(bytes: Buffer, start: number, end: number): void
  /** False when the peer is slow. */
  flush(): boolean
  /** Reads no more from the peer, and reads again. */
  pause(): void
  resume(): void
  /** The stream to the peer is complete. */
  end(): void
}

/** Bytes copied both ways between two ends that have left HTTP (RFC 9110 7.8). */
export class Tunnel {
  readonly #client: TunnelEnd
  readonly #upstream: TunnelEnd
  /** Bytes from the client and to it. */
  bytesUp = 0
  bytesDown = 0

  constructor(client: TunnelEnd, upstream: TunnelEnd) {
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

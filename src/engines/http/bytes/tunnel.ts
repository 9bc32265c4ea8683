/** One end of a tunnel: an HTTP/1.1 connection that was upgraded, or an HTTP/2 stream. */
export interface TunnelEnd {
  appendBytes(bytes: Buffer, start: number, end: number): void
  /** Sends what was appended. Returns false if the peer is slow. */
  flush(): boolean
  /** `pause` stops reading from the peer, and `resume` continues it. */
  pause(): void
  resume(): void
  /** Ends the stream to the peer. */
  end(): void
}

/** Copies bytes both ways between two ends that have left HTTP (RFC 9110 7.8). */
export class Tunnel {
  readonly #client: TunnelEnd
  readonly #upstream: TunnelEnd
  /** `bytesUp` counts bytes from the client, `bytesDown` bytes to the client. */
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

  /** Called when the client has ended its stream; ends the stream to the upstream. */
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

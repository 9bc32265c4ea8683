/** What an HTTP/2 connection of clients may be and do; a policy may set them for a listener. */
export interface Http2Limits {
  /** Streams that a client may have open at once (SETTINGS_MAX_CONCURRENT_STREAMS). */
  maxConcurrentStreams: number
  /** Octets that may wait for one stream (SETTINGS_INITIAL_WINDOW_SIZE), and for all of them together. */
  streamWindowBytes: number
  connectionWindowBytes: number
  /** Largest frame that is taken: 16,384 to 16,777,215 (SETTINGS_MAX_FRAME_SIZE). */
  maxFrameBytes: number
  /** A PING after so many milliseconds without a frame, while the connection is open; 0 = none. */
  keepaliveIntervalMs: number
  /** Milliseconds for its answer; then the connection is dropped. */
  keepaliveTimeoutMs: number
}

export const defaultHttp2Limits: Http2Limits = {
  maxConcurrentStreams: 128,
  streamWindowBytes: 256 * 1024,
  connectionWindowBytes: 1024 * 1024,
  maxFrameBytes: 16_384,
  keepaliveIntervalMs: 0,
  keepaliveTimeoutMs: 20_000,
}

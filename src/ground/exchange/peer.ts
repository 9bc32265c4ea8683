/** The ends of connections. Types only. */

/** The address of one end of a connection. */
export interface Peer {
  readonly address: string
  readonly port: number
  /** The PROXY header that this peer has sent; undefined if it sent none, or if it is not the peer of a socket. */
  readonly proxyHeader?: ProxyHeader | undefined
  /** The headers of the CONNECT in whose tunnel this peer talks to a listener; undefined outside such tunnels. */
  readonly connectHeaders?: ReadonlyMap<string, string> | undefined
}

/** The PROXY protocol header that a load balancer sends at the start of a connection. */
export interface ProxyHeader {
  readonly version: 1 | 2
  /** The extensions by type (version 2). Of several with one type, the first counts. */
  readonly tlvs: ReadonlyMap<number, Uint8Array>
}

/** The ends of the connection of a client. */
export interface ConnectionEnds {
  /** The client. It may be an address that a proxy in front of the gateway reports. */
  readonly source: Peer
  /** Peer of the TCP connection. */
  readonly rawSource: Peer
  readonly local: Peer
}

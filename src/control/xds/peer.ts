/** Who has opened a stream, as far as the call itself says. */
import type { Metadata } from '@grpc/grpc-js'
import type { ObjectName } from '../../ground/model/names.ts'
import type { ProxyNode } from '../wire/discovery.ts'
import type { StreamCall } from './listener.ts'

/** The peer as gRPC writes it, but with the IPv4 address of a proxy that came over IPv4. */
export const peerOf = (call: StreamCall): string =>
  call.getPeer().replace(/\[?::ffff:(\d+\.\d+\.\d+\.\d+)\]?(?=:\d+$)/, '$1')

/** Why a token is not accepted, for users. */
export const tokenProblem = (token: string | undefined) =>
  token === undefined ? 'no bearer token was sent' : 'the bearer token is not valid'

export function bearerToken(metadata: Metadata): string | undefined {
  const [value] = metadata.get('authorization')
  const match = /^bearer +(\S+) *$/i.exec(typeof value === 'string' ? value : '')
  return match?.[1]
}

const isSameName = (a: ObjectName, b: ObjectName) =>
  a.namespace === b.namespace && a.name === b.name

/**
 * Returns which other proxy a connected one is; undefined if it may be the same one. The stream of a proxy that is
 * gone ends with its connection, or by the keepalive after 20 s.
 */
export function otherOwner(older: ProxyNode, node: ProxyNode): string | undefined {
  if (!isSameName(older.gateway, node.gateway)) return 'a proxy of another Gateway'
  const isKnown = older.instance !== undefined && node.instance !== undefined
  return isKnown && older.instance !== node.instance ? 'another connected proxy' : undefined
}

/** Who has opened a stream, as far as the call itself says. */
import type { Metadata } from '@grpc/grpc-js'
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

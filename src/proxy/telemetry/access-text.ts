/** What texts in the access log look like. */

import type { ServerExchange } from '../../engine/contracts/requests.ts'
import { SocketPeer } from '../../engine/sockets/connection-ends.ts'
import type { RequestFacts } from './types.ts'

export interface Address {
  readonly address: string
  readonly port: number
}

/** `address:port`, with brackets around IPv6. */
export function addressText(of: Address): string {
  if (of instanceof SocketPeer) return of.text
  const { address, port } = of
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** What the log and the metrics call the status: as sent, else what the error would have sent. */
export function statusOf(exchange: ServerExchange, facts: RequestFacts): number {
  return facts.status || exchange.error?.row.status || 0
}

// Anything that could be read as the end of a value or of a line.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
const unsafe = /[\u0000-\u0020\u007f-\u00a0\u2028\u2029]/

/** What JSON leaves as it is and a terminal or a line reader would obey. */
const unsafeInJson = /[\u007f-\u009f\u2028\u2029]/g

export const quote = (value: string): string =>
  JSON.stringify(value).replace(
    unsafeInJson,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** ` name=value`, in quotes where it must be; nothing where there is no value. */
export const word = (name: string, value: string | undefined): string => {
  if (value === undefined || value === '') return ''
  return unsafe.test(value) ? ` ${name}=${quote(value)}` : ` ${name}=${value}`
}

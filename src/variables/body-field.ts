import { CelError, type CelResult } from '../cel/index.ts'
import type { Body } from '../exchange/exchange.ts'

const notRead = new CelError('limit', 'the body was not read into memory')
const tooLarge = new CelError('limit', 'the body is larger than the limit for bodies in memory')

/** `body`: all of it, or an error that is no missing key. */
export function bodyField(body: Body | undefined): CelResult {
  const known = body?.known
  if (known === undefined) return notRead
  return known.complete ? known.bytes : tooLarge
}

/** `bodyPrefix`: as much as the limit allows. */
export function bodyPrefixField(body: Body | undefined): CelResult {
  const known = body?.known
  if (known === undefined) return notRead
  return known.complete ? known.bytes : known.prefix
}

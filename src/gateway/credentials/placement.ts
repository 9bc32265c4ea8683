/** Where a request to a backend has its credential. */
import { cookiePairs } from '../../ground/base/cookie-pairs.ts'
import { changeQuery } from '../../ground/base/query-string.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import type { RequestHead } from '../../ground/exchange/exchange.ts'
import { isFieldValue } from '../../ground/model/header-changes.ts'
import type { PlacementConfig } from './config.ts'

/** Replaces the credential in the place by this one, also if an earlier attempt has put one there. */
export type Placement = (request: RequestHead, credential: string) => void

/** A value without a scheme is sent as a bearer token; one with a scheme is sent unchanged. */
const authorizationOf = (text: string): string => (/\s/.test(text) ? text : `Bearer ${text}`)

const inAuthorization: Placement = ({ headers }, credential) =>
  headers.set('authorization', authorizationOf(credential))

/** Returns the placement of a configuration; without one, the Authorization header. */
export function placementOf(config: PlacementConfig | undefined): Placement {
  if (config?.header !== undefined) return inHeader(config.header)
  if (config?.queryParameter !== undefined) return inQuery(config.queryParameter.name)
  if (config?.cookie !== undefined) return inCookie(config.cookie.name)
  return inAuthorization
}

function inHeader({ name, prefix }: NonNullable<PlacementConfig['header']>): Placement {
  if (prefix === undefined && name === 'authorization') return inAuthorization
  return ({ headers }, credential) => {
    const value = `${prefix ?? ''}${credential}`
    if (!isFieldValue(value)) throw unfit('header')
    headers.set(name, value)
  }
}

function inQuery(name: string): Placement {
  const encodedName = encodeURIComponent(name)
  return (request, credential) => {
    const { query } = request
    const others =
      query && changeQuery(query, (parameter, found) => (found === name ? undefined : parameter))
    const own = `${encodedName}=${encodeURIComponent(credential)}`
    request.query = others ? `${others}&${own}` : own
  }
}

function inCookie(name: string): Placement {
  return ({ headers }, credential) => {
    // RFC 6265 4.1.1: what a value of a cookie can have.
    if (!/^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+$/.test(credential)) throw unfit('cookie')
    const others = [...cookiePairs(headers.getAll('cookie'))].filter((pair) => pair.name !== name)
    headers.set('cookie', [...others.map(({ text }) => text), `${name}=${credential}`].join('; '))
  }
}

const unfit = (place: string): GatewayError =>
  new GatewayError('credentials_failed', `the credential has characters that no ${place} can carry`)

/** What a request is: a page that a browser opens, a request of a script, or a question about CORS. */
import type { RequestHead } from '../../ground/exchange/exchange.ts'
import { pathAndQuery } from '../../ground/exchange/exchange.ts'

/** Whether a browser opens a page, so that it follows a redirect to the provider. */
export function isNavigation({ method, headers, upgrade }: RequestHead): boolean {
  if (upgrade !== undefined || headers.has('sec-purpose')) return false
  const mode = headers.get('sec-fetch-mode')
  if (mode !== undefined) {
    return mode === 'navigate' && headers.get('sec-fetch-dest') === 'document'
  }
  if (method !== 'GET' && method !== 'HEAD') return false
  if (headers.get('x-requested-with') !== undefined) return false
  return headers.getAll('accept').some((accept) => accept.toLowerCase().includes('text/html'))
}

/** Whether the request asks for permission for another one (CORS). Browsers send it without cookies. */
export function isPreflight({ method, headers }: RequestHead): boolean {
  return (
    method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method')
  )
}

/** Maximum length of a path to return to, with its query. */
const maxReturnLength = 2_048

/**
 * Returns the path if browsers take it for one of this host, else `/`. They delete tabs and line ends, and read `\` as
 * `/`. Some applications decode a path once more before they redirect to it.
 */
export function safeReturnPath(path: string | null | undefined): string {
  if (path === null || path === undefined || path.length > maxReturnLength) return '/'
  return isLocal(path) && isLocal(decodeOnce(path)) ? path : '/'
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: browsers delete or fold them
const local = /^\/(?![/\\])[^\x00-\x1f\x7f]*$/

const isLocal = (path: string): boolean => local.test(path)

function decodeOnce(path: string): string {
  const [before = ''] = path.split(/[?#]/, 1)
  try {
    return decodeURIComponent(before)
  } catch {
    return before
  }
}

/** Where the browser returns to after the sign-in that this request begins. */
export function returnPathOf(request: RequestHead): string {
  const { method } = request
  if (method === 'GET' || method === 'HEAD') return safeReturnPath(pathAndQuery(request))
  return refererPath(request)
}

/** The path of the page that sent the request, if it is one of the same host. */
export function refererPath({ headers, authority }: RequestHead): string {
  const page = URL.parse(headers.get('referer') ?? '')
  if (page === null || page.host !== authority.toLowerCase()) return '/'
  return safeReturnPath(`${page.pathname}${page.search}`)
}

/** Whether the browser says that a page of this host, or the user, sent the request. */
export function isSameSite({ headers, authority, method }: RequestHead): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  const origin = headers.get('origin')
  if (origin === undefined) return method === 'POST'
  return URL.parse(origin)?.host === authority.toLowerCase()
}

const loopback = /^(?:localhost|(?:[\w-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i

/**
 * The origin of the request as browsers see it. Cookies need TLS, which may end before the gateway, so only
 * this machine is reached without.
 */
export function originOf({ scheme, authority }: RequestHead): string {
  const isPlain = scheme !== 'https' && loopback.test(authority)
  return `${isPlain ? 'http' : 'https'}://${authority}`
}

/** Makes a path absolute on the host of the request; absolute URLs stay as they are. */
export const absolute = (pathOrURL: string, request: RequestHead): string =>
  pathOrURL.startsWith('/') ? `${originOf(request)}${pathOrURL}` : pathOrURL

/** The path of a path or an absolute URL. */
export const pathOf = (pathOrURL: string): string =>
  pathOrURL.startsWith('/') ? pathOrURL : new URL(pathOrURL).pathname

/**
 * Cookies of sign-in. A session that is too long for one cookie is cut into `NAME`, `NAME.1`, `NAME.2` …; the first
 * one begins with the number of pieces. The pieces are sealed as a whole, so that a missing or foreign piece
 * makes the session invalid.
 */

/** Cookies that only the gateway sets and reads. Browsers accept them from this host alone, over TLS. */
export const reservedPrefix = '__Host-sluice-'

/** Browsers limit a cookie to 4,096 bytes of name and value. */
const pieceLength = 3_800
/** All pieces together, which must fit into the request head that servers and load balancers accept. */
const maxPieces = 5

/** A text that cannot be stored in cookies. */
export const maxValueLength = pieceLength * maxPieces

export interface RequestCookies {
  /** The reserved cookies by name, in the order of the request. */
  readonly own: ReadonlyMap<string, readonly string[]>
  /** The field value without reserved cookies; empty if there are no others. */
  readonly others: string
}

const none: RequestCookies = { own: new Map(), others: '' }

/** Reads Cookie fields (RFC 6265 section 5.4). */
export function readCookies(line: string): RequestCookies {
  if (!line.includes(reservedPrefix)) return { ...none, others: line }
  const own = new Map<string, string[]>()
  const others: string[] = []
  for (const part of line.split(';')) {
    const pair = part.trim()
    if (pair.startsWith(reservedPrefix)) {
      const equals = pair.indexOf('=')
      const name = equals < 0 ? pair : pair.slice(0, equals)
      const value = equals < 0 ? '' : pair.slice(equals + 1)
      const known = own.get(name)
      if (known === undefined) own.set(name, [value])
      else known.push(value)
    } else if (pair !== '') others.push(pair)
  }
  return { own, others: others.join('; ') }
}

/**
 * Joins the pieces of a value. A browser sends a reserved name once; if a client repeats it, the last one counts.
 * Returns undefined if a piece is missing.
 */
export function joinPieces({ own }: RequestCookies, name: string): string | undefined {
  const first = own.get(name)?.at(-1)
  const dot = first?.indexOf('.') ?? -1
  if (first === undefined || dot !== 1) return undefined
  const count = Number(first[0])
  if (!(count >= 1 && count <= maxPieces)) return undefined
  let value = first.slice(dot + 1)
  for (let at = 1; at < count; at++) {
    const piece = own.get(`${name}.${at}`)?.at(-1)
    if (piece === undefined) return undefined
    value += piece
  }
  return value
}

/** Returns Set-Cookie values that store the value, and delete pieces of a longer one that the browser has. */
export function setPieces(
  name: string,
  value: string,
  maxAgeSeconds: number,
  cookies: RequestCookies,
): string[] {
  const count = Math.ceil((value.length + 2) / pieceLength)
  const text = `${count}.${value}`
  const written = Array.from({ length: count }, (_, at) =>
    setCookie(
      at === 0 ? name : `${name}.${at}`,
      text.slice(at * pieceLength, (at + 1) * pieceLength),
      maxAgeSeconds,
    ),
  )
  return [...written, ...deletePieces(name, cookies, count)]
}

/** Returns Set-Cookie values that delete the pieces from `from` on that the browser has. */
export function deletePieces(name: string, { own }: RequestCookies, from = 0): string[] {
  return [...own.keys()].filter((one) => pieceOf(one, name) >= from).map(deleteCookie)
}

/** The index of a piece of the value; -1 if the cookie is none. */
function pieceOf(cookie: string, name: string): number {
  if (cookie === name) return 0
  return cookie.startsWith(`${name}.`)
    ? Number(/^\d$/.exec(cookie.slice(name.length + 1)) ?? -1)
    : -1
}

const attributes = 'Path=/; Secure; HttpOnly; SameSite=Lax'

export const setCookie = (name: string, value: string, maxAgeSeconds: number): string =>
  `${name}=${value}; ${attributes}; Max-Age=${Math.max(0, Math.ceil(maxAgeSeconds))}`

export const deleteCookie = (name: string): string => setCookie(name, '', 0)

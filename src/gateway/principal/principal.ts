/**
 * Who a request belongs to. Nothing else builds a key of the credentials of clients: accounts, records and metrics use
 * `name`, MCP sessions `digest`, and what providers of models store `owner`. All of them differ for different issuers.
 */
import { hash } from 'node:crypto'
import { hexDigest } from '../../ground/base/digest.ts'
import type { Exchange, PeerCertificate } from '../../ground/exchange/exchange.ts'
import { Learned, type LearnedRecord } from '../../ground/exchange/learned.ts'
import { canonical, clientOf, credentialParts, textIn } from './credentials.ts'

/** Maximum length of a name. A longer one is replaced by its digest, so that two of them stay apart. */
const maxLength = 256

export const boundedName = (name: string): string =>
  name.length > maxLength ? `sha256:${hexDigest('sha256', name)}` : name

/** The names of verified claims and of certificates, which are the same objects for many requests. */
const names = new WeakMap<LearnedRecord | PeerCertificate, string>()

/**
 * Returns the name of the principal; undefined if no credentials were verified. It is
 *
 *   API key       its id
 *   token         `ISSUER#SUBJECT`, or `ISSUER##CLIENT` if there is no subject
 *   user name     `basic#USER`
 *   certificate   the SPIFFE id, or else `certificate#SUBJECT`
 *
 * of the first of these that the request has.
 */
export function principalName({ learned, peerCertificate }: Exchange): string | undefined {
  const { apiKey } = learned
  const id = apiKey?.id
  if (typeof id === 'string' && id !== '') return boundedName(id)
  const { jwt } = learned
  if (jwt !== undefined) return kept(jwt, nameOfToken)
  const user = learned.basicAuth?.username
  if (user !== undefined) return boundedName(`basic#${escaped(user)}`)
  return peerCertificate && kept(peerCertificate, nameOfCertificate)
}

function kept<Source extends LearnedRecord | PeerCertificate>(
  source: Source,
  nameOf: (source: Source) => string,
): string | undefined {
  let name = names.get(source)
  if (name === undefined) {
    name = boundedName(nameOf(source))
    names.set(source, name)
  }
  return name === '' ? undefined : name
}

/** Name of the user of a token. */
export const nameOfUser = (issuer: string, subject: string): string =>
  boundedName(`${escaped(issuer)}#${escaped(subject)}`)

/** Returns an empty text if neither a user nor a client is named. */
function nameOfToken(jwt: LearnedRecord): string {
  const issuer = textIn(jwt, 'iss') ?? ''
  const subject = textIn(jwt, 'sub')
  if (subject !== undefined) return nameOfUser(issuer, subject)
  const client = clientOf(jwt)
  return client === undefined ? '' : `${escaped(issuer)}##${escaped(client)}`
}

const nameOfCertificate = ({ spiffeId, subject, subjectAltNames }: PeerCertificate): string => {
  if (spiffeId !== undefined) return spiffeId
  const name = subject === '' ? subjectAltNames[0] : subject
  return name === undefined ? '' : `certificate#${escaped(name)}`
}

/** Without `#`, which separates the parts of a name. */
const escaped = (part: string): string =>
  part.replaceAll(/[#%]/g, (found) => (found === '#' ? '%23' : '%25'))

/** Who the request belongs to, by dimension; undefined if nothing says so. */
export function identityOf(exchange: Exchange): Readonly<Record<string, string>> | undefined {
  const { ownIdentity } = exchange.learned
  if (ownIdentity !== undefined) return ownIdentity
  const principal = principalName(exchange)
  return principal === undefined ? undefined : { principal }
}

/** The digests of one request, and what they were made from. */
interface Digests {
  readonly sources: readonly unknown[]
  readonly parts: readonly (string | undefined)[]
  digest: string | undefined
}

const digests = new WeakMap<Learned, Digests>()

/** Those of a request without credentials. */
const noDigests: Digests = {
  sources: [],
  parts: credentialParts(new Learned(), undefined),
  digest: undefined,
}

function digestsOf({ learned, peerCertificate }: Exchange): Digests {
  const { jwt, apiKey, basicAuth, extauthz, authorizedCaller } = learned
  const first = jwt ?? apiKey ?? basicAuth ?? extauthz ?? authorizedCaller ?? peerCertificate
  if (first === undefined) return noDigests
  const sources = [jwt, apiKey, basicAuth, extauthz, authorizedCaller, peerCertificate]
  const known = digests.get(learned)
  if (known?.sources.every((source, at) => source === sources[at])) return known
  const parts = credentialParts(learned, peerCertificate)
  const found = { sources, parts, digest: digestOf(parts) }
  digests.set(learned, found)
  return found
}

/**
 * Returns a digest of all verified credentials; undefined if there are none. New credentials of the same principal
 * have the same digest.
 */
export const principalDigest = (exchange: Exchange): string | undefined =>
  digestsOf(exchange).digest

/**
 * Returns a digest of the user: that of a verified token with an issuer and a subject, however the user has signed in, or
 * else of all verified credentials; undefined if there are none.
 */
export function userDigest(exchange: Exchange): string | undefined {
  const { jwt } = exchange.learned
  const [issuer, subject] = [jwt && textIn(jwt, 'iss'), jwt && textIn(jwt, 'sub')]
  return issuer === undefined || subject === undefined
    ? principalDigest(exchange)
    : digestOf([JSON.stringify(['user', issuer, subject])])
}

/**
 * Returns a digest of the owner of what a provider stores: the principal, and who the request belongs to by a policy
 * `identity`; undefined if nothing says who the client is.
 */
export function ownerDigest(exchange: Exchange): string | undefined {
  const { ownIdentity } = exchange.learned
  const { parts, digest } = digestsOf(exchange)
  return ownIdentity === undefined ? digest : digestOf([...parts, canonical(ownIdentity)])
}

function digestOf(parts: readonly (string | undefined)[]): string | undefined {
  if (parts.every((part) => part === undefined)) return undefined
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 22)
}

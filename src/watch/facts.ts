import {
  createPrivateKey,
  createPublicKey,
  type JsonWebKey,
  type KeyObject,
  X509Certificate,
} from 'node:crypto'
import type {
  ApiKeyVerdict,
  CertificateFacts,
  HtpasswdLineFacts,
  SecretEntryFacts,
  SecretFacts,
} from '../../events/index.ts'
import { htpasswdLines, passwordHashKind } from '../base/htpasswd.ts'
import type { DigestKey } from './digest-key.ts'

/** What may be known of a Secret: everything that a condition depends on, and no value. */
export function secretFacts(
  entries: ReadonlyMap<string, Uint8Array>,
  digestKey: DigestKey,
): SecretFacts {
  const parsed = [...entries].map(([name, value]) => parseEntry(name, value))
  const leaves = namesByPublicKey(parsed)
  const facts = parsed.map((entry) => [entry.name, factsOf(entry, leaves, digestKey)] as const)
  return { entries: Object.fromEntries(facts) }
}

interface ParsedEntry {
  readonly name: string
  readonly value: Uint8Array
  /** Absent where the bytes are not UTF-8. */
  readonly text: string | undefined
  readonly certificates: readonly ParsedCertificate[]
}

interface ParsedCertificate {
  readonly facts: CertificateFacts
  /** Absent if the certificate or its key cannot be read. */
  readonly publicKey?: string
}

function parseEntry(name: string, value: Uint8Array): ParsedEntry {
  const text = decodeText(value)
  const blocks = text?.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  // Only the key of the first one is ever asked for.
  const certificates = blocks.map((pem, at) => parseCertificate(pem, at === 0))
  return { name, value, text, certificates }
}

/** Entries by the public key of their first certificate: a Secret may hold many of both. */
function namesByPublicKey(entries: readonly ParsedEntry[]): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>()
  for (const { name, certificates } of entries) {
    const publicKey = certificates[0]?.publicKey
    if (publicKey === undefined) continue
    const known = names.get(publicKey)
    if (known === undefined) names.set(publicKey, [name])
    else known.push(name)
  }
  return names
}

function factsOf(
  entry: ParsedEntry,
  leaves: ReadonlyMap<string, readonly string[]>,
  digestKey: DigestKey,
): SecretEntryFacts {
  const { name, value, text, certificates } = entry
  const lines = name === '.htaccess' ? htpasswdFacts(text ?? '') : undefined
  const privateKey = privateKeyFacts(text ?? '', leaves)
  return {
    digest: digestKey.digest(value),
    isEmpty: value.length === 0,
    ...(certificates.length > 0 && { certificates: certificates.map(({ facts }) => facts) }),
    ...(privateKey && { privateKey }),
    ...(lines && { htpasswd: lines }),
    apiKey: apiKeyVerdict(text),
  }
}

function decodeText(value: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(value)
  } catch {
    return undefined
  }
}

/** A certificate with any field that cannot be read, such as a date that is none, is not valid. */
function parseCertificate(pem: string, isFirst: boolean): ParsedCertificate {
  try {
    const certificate = new X509Certificate(pem)
    const facts: CertificateFacts = {
      isValid: true,
      notBefore: certificate.validFromDate.toISOString(),
      notAfter: certificate.validToDate.toISOString(),
      names: subjectNames(certificate.subjectAltName ?? ''),
      isAuthority: certificate.ca,
    }
    return isFirst ? { facts, publicKey: publicKeyText(certificate.publicKey) } : { facts }
  } catch {
    return { facts: { isValid: false } }
  }
}

/** The same text for equal keys. A JWK does not depend on how a certificate encodes the key. */
function publicKeyText(key: KeyObject): string {
  const { kty, crv, x, y, n, e } = jwkOf(key) ?? {}
  if (x !== undefined || n !== undefined) return [kty, crv, x, y, n, e].join(' ')
  return key.export({ type: 'spki', format: 'der' }).toString('base64')
}

/** Undefined for the kinds of keys that have no JWK. */
function jwkOf(key: KeyObject): JsonWebKey | undefined {
  try {
    return key.export({ format: 'jwk' })
  } catch {
    return undefined
  }
}

/** `DNS:a.example, IP Address:192.0.2.1`; names that need quoting there are left out. */
function subjectNames(text: string): string[] {
  return text.split(', ').flatMap((name) => {
    const match = /^(?:DNS|IP Address):([^"]+)$/.exec(name)
    return match?.[1] === undefined ? [] : [match[1]]
  })
}

function privateKeyFacts(
  text: string,
  leaves: ReadonlyMap<string, readonly string[]>,
): SecretEntryFacts['privateKey'] {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) return undefined
  try {
    const key = createPrivateKey(text)
    const pairsWith = leaves.get(publicKeyText(createPublicKey(key))) ?? []
    return { type: key.asymmetricKeyType ?? 'unknown', pairsWith }
  } catch {
    return { type: 'unreadable', pairsWith: [] }
  }
}

function htpasswdFacts(text: string): HtpasswdLineFacts[] {
  return htpasswdLines(text).map(({ line, user, hash }) => ({
    line,
    hash: user === undefined ? 'malformed' : (passwordHashKind(hash) ?? 'unsupported'),
  }))
}

function apiKeyVerdict(text: string | undefined): ApiKeyVerdict {
  if (text === undefined) return 'not-text'
  const trimmed = text.trim()
  if (trimmed === '') return 'empty'
  if (!trimmed.startsWith('{')) return 'plain'
  try {
    const { key } = JSON.parse(trimmed) as { key?: unknown }
    return typeof key === 'string' && key !== '' ? 'json' : 'json-without-key'
  } catch {
    return 'not-json'
  }
}

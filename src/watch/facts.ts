import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
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
  const facts = parsed.map((entry) => [entry.name, factsOf(entry, parsed, digestKey)] as const)
  return { entries: Object.fromEntries(facts) }
}

interface ParsedEntry {
  readonly name: string
  readonly value: Uint8Array
  /** Absent where the bytes are not UTF-8. */
  readonly text: string | undefined
  /** An undefined element is a PEM block that is no certificate. */
  readonly certificates: readonly (X509Certificate | undefined)[]
}

function parseEntry(name: string, value: Uint8Array): ParsedEntry {
  const text = decodeText(value)
  const blocks = text?.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  return { name, value, text, certificates: blocks.map(parseCertificate) }
}

function factsOf(
  entry: ParsedEntry,
  all: readonly ParsedEntry[],
  digestKey: DigestKey,
): SecretEntryFacts {
  const { name, value, text, certificates } = entry
  const lines = name === '.htaccess' ? htpasswdFacts(text ?? '') : undefined
  const privateKey = privateKeyFacts(text ?? '', all)
  return {
    digest: digestKey.digest(value),
    isEmpty: value.length === 0,
    ...(certificates.length > 0 && { certificates: certificates.map(certificateFacts) }),
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

function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

function certificateFacts(certificate: X509Certificate | undefined): CertificateFacts {
  if (certificate === undefined) return { isValid: false }
  return {
    isValid: true,
    notBefore: new Date(certificate.validFrom).toISOString(),
    notAfter: new Date(certificate.validTo).toISOString(),
    names: subjectNames(certificate.subjectAltName ?? ''),
    isAuthority: certificate.ca,
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
  all: readonly ParsedEntry[],
): SecretEntryFacts['privateKey'] {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) return undefined
  const key = parsePrivateKey(text)
  if (key === undefined) return { type: 'unreadable', pairsWith: [] }
  const fits = all.filter(({ certificates }) => certificates[0]?.checkPrivateKey(key) === true)
  return { type: key.asymmetricKeyType ?? 'unknown', pairsWith: fits.map(({ name }) => name) }
}

function parsePrivateKey(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text)
  } catch {
    return undefined
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

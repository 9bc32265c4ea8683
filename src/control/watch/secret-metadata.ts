import {
  createPrivateKey,
  createPublicKey,
  type JsonWebKey,
  type KeyObject,
  X509Certificate,
} from 'node:crypto'
import type {
  ApiKeyVerdict,
  CertificateMetadata,
  HtpasswdLineMetadata,
  SecretEntryMetadata,
  SecretMetadata,
} from '../../../events/index.ts'
import { htpasswdLines, passwordHashKind } from '../../engines/auth/passwords/htpasswd.ts'
import { readApiKeyEntry } from '../../ground/secrets/api-key-entry.ts'
import type { DigestKey } from './digest-key.ts'

/** Derives the metadata of a Secret that conditions depend on. It contains no secret values. */
export function secretMetadata(
  entries: ReadonlyMap<string, Uint8Array>,
  digestKey: DigestKey,
): SecretMetadata {
  const parsed = [...entries].map(([name, value]) => parseEntry(name, value))
  const leaves = Map.groupBy(parsed, ({ certificates }) => certificates[0]?.publicKey)
  const metadata = parsed.map(
    (entry) => [entry.name, metadataOf(entry, leaves, digestKey)] as const,
  )
  return { entries: Object.fromEntries(metadata) }
}

interface ParsedEntry {
  readonly name: string
  readonly value: Uint8Array
  /** Undefined if the bytes are not UTF-8. */
  readonly text: string | undefined
  readonly certificates: readonly ParsedCertificate[]
}

/** Entries by the public key of their first certificate, to find the certificates of a private key. */
type Leaves = ReadonlyMap<string | undefined, readonly ParsedEntry[]>

interface ParsedCertificate {
  readonly metadata: CertificateMetadata
  /** Set only for the first certificate of an entry, unless it or its key cannot be read. */
  readonly publicKey?: string
}

function parseEntry(name: string, value: Uint8Array): ParsedEntry {
  const text = decodeText(value)
  const blocks = text?.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  // Only the key of the first certificate is used.
  const certificates = blocks.map((pem, at) => parseCertificate(pem, at === 0))
  return { name, value, text, certificates }
}

function metadataOf(entry: ParsedEntry, leaves: Leaves, digestKey: DigestKey): SecretEntryMetadata {
  const { name, value, text, certificates } = entry
  const lines =
    name === '.htaccess' || isPasswordFile(text) ? htpasswdMetadata(text ?? '') : undefined
  const privateKey = privateKeyMetadata(text ?? '', leaves)
  return {
    digest: digestKey.digest(value),
    isEmpty: value.length === 0,
    ...(certificates.length > 0 && { certificates: certificates.map(({ metadata }) => metadata) }),
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

/** Marks the certificate as invalid if any field cannot be read, such as a malformed date. */
function parseCertificate(pem: string, isFirst: boolean): ParsedCertificate {
  try {
    const certificate = new X509Certificate(pem)
    const metadata: CertificateMetadata = {
      isValid: true,
      // The dates that Node computes are arbitrary if the field is not a date; its texts are not.
      notBefore: new Date(certificate.validFrom).toISOString(),
      notAfter: new Date(certificate.validTo).toISOString(),
      names: subjectNames(certificate.subjectAltName ?? ''),
      isAuthority: certificate.ca,
    }
    return isFirst ? { metadata, publicKey: publicKeyText(certificate.publicKey) } : { metadata }
  } catch {
    return { metadata: { isValid: false } }
  }
}

/** Returns the same text for equal keys: the JWK does not depend on how a certificate encodes the key. */
function publicKeyText(key: KeyObject): string {
  const { kty, crv, x, y, n, e } = jwkOf(key) ?? {}
  if (x !== undefined || n !== undefined) return [kty, crv, x, y, n, e].join(' ')
  return key.export({ type: 'spki', format: 'der' }).toString('base64')
}

/** Returns undefined for key types that have no JWK format. */
function jwkOf(key: KeyObject): JsonWebKey | undefined {
  try {
    return key.export({ format: 'jwk' })
  } catch {
    return undefined
  }
}

/** Parses names such as `DNS:a.example, IP Address:192.0.2.1`. Names that need quoting are left out. */
function subjectNames(text: string): string[] {
  return text.split(', ').flatMap((name) => {
    const match = /^(?:DNS|IP Address):([^"]+)$/.exec(name)
    return match?.[1] === undefined ? [] : [match[1]]
  })
}

function privateKeyMetadata(text: string, leaves: Leaves): SecretEntryMetadata['privateKey'] {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) return undefined
  try {
    const key = createPrivateKey(text)
    const pairs = leaves.get(publicKeyText(createPublicKey(key))) ?? []
    return { type: key.asymmetricKeyType ?? 'unknown', pairsWith: pairs.map(({ name }) => name) }
  } catch {
    return { type: 'unreadable', pairsWith: [] }
  }
}

/** Returns whether the text looks like an htpasswd file, for entries with other names than `.htaccess`. */
const isPasswordFile = (text = ''): boolean =>
  text.includes(':') && htpasswdLines(text).some(({ hash }) => passwordHashKind(hash) !== undefined)

function htpasswdMetadata(text: string): HtpasswdLineMetadata[] {
  return htpasswdLines(text).map(({ line, user, hash }) => ({
    line,
    hash: user === undefined ? 'malformed' : (passwordHashKind(hash) ?? 'unsupported'),
  }))
}

function apiKeyVerdict(text: string | undefined): ApiKeyVerdict {
  const entry = readApiKeyEntry(text)
  if (typeof entry === 'string') return entry
  return entry.key === text?.trim() ? 'plain' : 'json'
}

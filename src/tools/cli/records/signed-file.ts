/**
 * A file with decision records and a signature, for machines that must trust it, such as a pipeline:
 *
 *   a compact JWS (RFC 7515) of the header, in one line ── newline ── the blocks, as in a folder of records
 *
 * The header has the SHA-256 of the blocks. The key decides the algorithm, never the file.
 */
import { createPrivateKey, createPublicKey, hash, type KeyObject } from 'node:crypto'
import type * as Jose from 'jose'
import { isObject } from '../../../ground/base/json-object.ts'
import { readWholeFile } from '../../../ground/base/read-whole-file.ts'
import { UsageError } from '../shared/output.ts'

const format = 'sluice-records/1'
const minSecretBytes = 32
const newline = 0x0a
/** Maximum bytes of the first line. */
const maxHeaderBytes = 4_096
export const maxFileBytes = 256 * 1024 * 1024

interface SignedHeader {
  readonly format: typeof format
  /** RFC 3339, when the file was written. */
  readonly created: string
  readonly records: number
  /** Times of the first and the last request. */
  readonly from?: string
  readonly to?: string
  readonly sha256: string
}

type SigningKey = { readonly alg: 'EdDSA' | 'HS256'; readonly key: KeyObject | Uint8Array }

/**
 * Reads a key: an Ed25519 key in PEM, or else a secret for HMAC with SHA-256.
 * @throws UsageError if it is neither
 */
export function readSigningKey(path: string, use: 'sign' | 'verify'): SigningKey {
  const text = read(path)
  if (!text.includes('-----BEGIN')) {
    const secret = Buffer.from(text.trim())
    if (secret.length >= minSecretBytes) return { alg: 'HS256', key: secret }
    throw new UsageError(
      `${path} has ${secret.length} bytes; a secret must have at least ${minSecretBytes}`,
    )
  }
  const key = pemKey(path, text, use)
  if (key.asymmetricKeyType === 'ed25519') return { alg: 'EdDSA', key }
  throw new UsageError(`${path} is a key of type ${key.asymmetricKeyType}; expected Ed25519`)
}

function pemKey(path: string, text: string, use: 'sign' | 'verify'): KeyObject {
  try {
    return use === 'sign' ? createPrivateKey(text) : createPublicKey(text)
  } catch {
    const expected = use === 'sign' ? 'private' : 'public'
    throw new UsageError(`${path} is not an Ed25519 ${expected} key in PEM`)
  }
}

function read(path: string, maxBytes?: number): string {
  try {
    return readWholeFile(path, maxBytes)
  } catch (error) {
    throw new UsageError(`${path}: ${error instanceof Error ? error.message : error}`)
  }
}

const loadJose = (): Promise<typeof Jose> => import('jose')

export async function signedFile(
  blocks: Buffer,
  about: Omit<SignedHeader, 'format' | 'sha256'>,
  { alg, key }: SigningKey,
): Promise<Buffer> {
  const header: SignedHeader = { format, ...about, sha256: hash('sha256', blocks) }
  const { CompactSign } = await loadJose()
  const payload = Buffer.from(JSON.stringify(header))
  const line = await new CompactSign(payload).setProtectedHeader({ alg }).sign(key)
  return Buffer.concat([Buffer.from(`${line}\n`), blocks])
}

/**
 * Returns the blocks of a file.
 * @param maxAgeMs maximum age of the file in milliseconds
 * @throws UsageError if the key has not signed the file, or if the file is too old
 */
export async function verifiedBlocks(
  path: string,
  bytes: Buffer,
  key: SigningKey,
  maxAgeMs: number,
): Promise<Buffer> {
  const end = bytes.subarray(0, maxHeaderBytes).indexOf(newline)
  if (end < 0) throw new UsageError(`${path} is not an export of records: it has no signature`)
  const header = await verifiedHeader(path, bytes.toString('latin1', 0, end), key)
  const blocks = bytes.subarray(end + 1)
  if (hash('sha256', blocks) !== header.sha256) {
    throw new UsageError(`${path} was changed after it was signed`)
  }
  const age = Date.now() - Date.parse(header.created)
  // A file from the future would never become too old.
  if (Number.isNaN(age) || age < -maxClockSkewMs) {
    throw new UsageError(`${path} was written in the future (${header.created})`)
  }
  if (age > maxAgeMs) {
    throw new UsageError(
      `${path} is too old: it was written at ${header.created}. Export records again, or set --records-max-age`,
    )
  }
  return blocks
}

const maxClockSkewMs = 5 * 60_000

async function verifiedHeader(
  path: string,
  line: string,
  { alg, key }: SigningKey,
): Promise<SignedHeader> {
  const { compactVerify } = await loadJose()
  let payload: Uint8Array
  try {
    payload = (await compactVerify(line, key, { algorithms: [alg] })).payload
  } catch {
    throw new UsageError(`${path} is not signed by the key of --records-key`)
  }
  const header: unknown = JSON.parse(Buffer.from(payload).toString())
  if (isObject(header) && header.format === format) return header as unknown as SignedHeader
  throw new UsageError(`${path} is not an export of records that this version can read`)
}

/** Checks Signature Version 4 with the signer of the official SDK, which shares nothing with ours. */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'
import type { SourceData } from '@smithy/types'
import type { VendorCall } from './vendor.ts'

export interface SigningKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

const bytesOf = (data: SourceData): Buffer => {
  if (typeof data === 'string') return Buffer.from(data)
  return data instanceof ArrayBuffer
    ? Buffer.from(data)
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength)
}

class Sha256 {
  readonly #hash: Hash | Hmac

  constructor(secret?: SourceData) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret))
  }

  update(data: SourceData): void {
    this.#hash.update(bytesOf(data))
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }

  reset(): void {
    throw new Error('a hash is used once')
  }
}

const form =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/

/** The error in the signature of a call; undefined if it matches the keys. */
export async function signatureProblem(
  { method, path, headers, text }: VendorCall,
  keys: SigningKeys,
  scope: { readonly region: string; readonly service: string },
): Promise<string | undefined> {
  const authorization = headers.authorization ?? ''
  const [, id, , region, service, signed = ''] = form.exec(authorization) ?? []
  if (id === undefined) return `no signature: ${authorization}`
  if (id !== keys.accessKeyId) return `unknown access key ${id}`
  if (region !== scope.region || service !== scope.service) return `scope ${region}/${service}`
  if (headers['x-amz-security-token'] !== keys.sessionToken) return 'session token'
  const names = signed.split(';')
  for (const name of ['host', 'x-amz-date']) {
    if (!names.includes(name)) return `${name} is not signed`
  }
  const { pathname, searchParams, hostname } = new URL(path, `http://${headers.host}`)
  const query = Object.fromEntries(searchParams)
  const kept = names.filter((name) => name !== 'x-amz-security-token')
  const signer = new SignatureV4({
    credentials: keys,
    ...scope,
    sha256: Sha256,
    applyChecksum: false,
  })
  const date = String(headers['x-amz-date'])
  const signingDate = new Date(
    date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  )
  const again = await signer.sign(
    {
      method,
      protocol: 'https:',
      hostname,
      path: pathname,
      query,
      headers: Object.fromEntries(kept.map((name) => [name, String(headers[name])])),
      body: text,
    },
    { signingDate },
  )
  const expected = form.exec(String(again.headers.authorization))?.[6]
  if (expected !== form.exec(authorization)?.[6]) {
    return 'The request signature we calculated does not match the signature you provided.'
  }
  return undefined
}

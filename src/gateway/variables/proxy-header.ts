import type { CelRecord } from '../../engines/cel/index.ts'
import type { ProxyHeader } from '../../ground/exchange/peer.ts'

/** Types of extensions (PROXY protocol version 2, and the documentation of AWS, Azure and Google Cloud). */
const types = { authority: 0x02, uniqueId: 0x05, google: 0xe0, amazon: 0xea, azure: 0xee } as const

/** The first byte of the values of Amazon and Azure, whose other bytes are then an id. */
const idSubtype = 1

/** Returns the variable `source.proxyProtocol`. Extensions that the header does not have are missing. */
export function proxyHeaderRecord({ version, tlvs }: ProxyHeader): CelRecord {
  const authority = tlvs.get(types.authority)
  const amazon = idOf(tlvs.get(types.amazon))
  return {
    version: BigInt(version),
    authority: authority && utf8(authority),
    uniqueId: tlvs.get(types.uniqueId),
    awsVpcEndpointId: amazon && utf8(amazon),
    azurePrivateEndpointLinkId: numberOf(idOf(tlvs.get(types.azure)), 4)?.readUInt32LE(),
    gcpPscConnectionId: numberOf(tlvs.get(types.google), 8)?.readBigUInt64BE(),
    tlvs: Object.fromEntries([...tlvs].map(([type, value]) => [hex(type), value])),
  }
}

const hex = (type: number) => `0x${type.toString(16).toUpperCase().padStart(2, '0')}`

const utf8 = (bytes: Uint8Array) => Buffer.from(bytes).toString()

const idOf = (value: Uint8Array | undefined) =>
  value?.[0] === idSubtype ? value.subarray(1) : undefined

const numberOf = (value: Uint8Array | undefined, length: number) =>
  value?.length === length ? Buffer.from(value) : undefined

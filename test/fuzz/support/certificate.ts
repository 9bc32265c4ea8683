/** Certificates with any content in any field (RFC 5280). Nothing verifies their signatures. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { Random } from './random.ts'

type Bytes = Uint8Array | string

const bytesOf = (content: Bytes): Buffer =>
  typeof content === 'string' ? Buffer.from(content, 'latin1') : Buffer.from(content)

/** One element of DER. */
function der(tag: number, ...contents: readonly Bytes[]): Buffer {
  const content = Buffer.concat(contents.map(bytesOf))
  const { length } = content
  const header =
    length < 128
      ? [tag, length]
      : length < 65_536
        ? [tag, 0x82, length >> 8, length & 0xff]
        : [tag, 0x83, length >> 16, (length >> 8) & 0xff, length & 0xff]
  return Buffer.concat([Buffer.from(header), content])
}

const sequence = (...contents: readonly Bytes[]) => der(0x30, ...contents)
const object = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const commonName = object('550403')
const subjectAltName = object('551d11')
const signatureOids = ['2b6570', '2a864886f70d01010b', '2a8648ce3d040302', '2a0304', '']

/** Private keys that are the same on every machine: the octets are fixed. */
const privateKeys: readonly KeyObject[] = [
  ['302e020100300506032b657004220420', 32],
  ['302e020100300506032b656e04220420', 32],
  ['3047020100300506032b6571043b0439', 57],
].map(([prefix, length]) =>
  createPrivateKey({
    key: Buffer.concat([Buffer.from(`${prefix}`, 'hex'), Buffer.alloc(Number(length), 7)]),
    format: 'der',
    type: 'pkcs8',
  }),
)

const dates = [
  ...['260101000000Z', '360101000000Z', '491231235959Z', '500101000000Z', '999999999999Z'],
  ...['20260101000000Z', '99991231235959Z', '00000101000000Z', '20260230000000Z', '2026Z', ''],
  ...['260101000000+0100', '20260101000000.5Z', '-10101000000Z', 'zzzzzzzzzzzzZ', '\0', '0'],
]
const names = [
  ...['a.example', '*.a.example', '', '\0', 'a\0.example', '"', ', DNS:b', 'é', '\xff'.repeat(9)],
  ...['a'.repeat(300), 'a, IP Address:1.2.3.4', 'DNS:"x"', '\n', '\ud83d\ude00'],
]

function time(random: Random): Buffer {
  return der(random.pick([0x17, 0x18, 0x18, 0x16, 0x05]), random.pick(dates))
}

function alternatives(random: Random): Buffer {
  const count = random.length(random.oneIn(20) ? 2000 : 6)
  const all = Array.from({ length: count }, () => {
    // The forms of GeneralName: other, mail, DNS, X.400, directory, EDI, URI, address, identifier.
    const tag = random.pick([
      0xa0, 0x81, 0x82, 0x82, 0x82, 0xa3, 0xa4, 0xa5, 0x86, 0x87, 0x87, 0x88,
    ])
    if (tag === 0x87) return der(tag, random.bytes(random.pick([0, 4, 16, 5, 32])))
    return der(tag, random.oneIn(4) ? random.bytes(random.length(40)) : random.pick(names))
  })
  return sequence(subjectAltName, der(0x04, sequence(...all)))
}

function publicKey(random: Random): Buffer {
  if (random.oneIn(6)) return sequence(sequence(object('2a0304')), der(0x03, '\0abc'))
  if (random.oneIn(12)) return random.bytes(random.length(80))
  return createPublicKey(random.pick(privateKeys)).export({ type: 'spki', format: 'der' })
}

function certificate(random: Random): Buffer {
  const algorithm = sequence(object(random.pick(signatureOids)))
  const name = sequence(
    der(0x31, sequence(commonName, der(random.pick([0x0c, 0x13, 0x1e]), random.pick(names)))),
  )
  const serial = der(0x02, random.bytes(random.length(random.oneIn(10) ? 5000 : 30)))
  const version = random.oneIn(5) ? [] : [der(0xa0, der(0x02, Buffer.from([random.below(4)])))]
  const extensions = random.oneIn(6) ? [] : [der(0xa3, sequence(alternatives(random)))]
  const validity = sequence(time(random), time(random))
  const fields = [...version, serial, algorithm, name, validity, name, publicKey(random)]
  const body = sequence(...fields, ...extensions)
  return sequence(body, algorithm, der(0x03, random.bytes(65)))
}

const wrap = (label: string, content: Buffer): string =>
  `-----BEGIN ${label}-----\n${content.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`

function privateKey(random: Random): string {
  const pem = random.pick(privateKeys).export({ type: 'pkcs8', format: 'pem' }).toString()
  if (random.oneIn(3)) return pem
  const label = random.pick(['EC PRIVATE KEY', 'RSA PRIVATE KEY', 'ENCRYPTED PRIVATE KEY', 'KEY'])
  return random.oneIn(2) ? pem.slice(0, random.below(pem.length)) : wrap(label, random.bytes(90))
}

/** The text of an entry of a Secret or ConfigMap: certificates and keys, whole or broken. */
export function pem(random: Random): string {
  const count = random.oneIn(30) ? 200 : 1 + random.length(4)
  const blocks = Array.from({ length: count }, () =>
    random.oneIn(5) ? privateKey(random) : wrap('CERTIFICATE', certificate(random)),
  )
  const text = blocks.join(random.pick(['', '\n', 'text between\n', '\r\n']))
  if (random.oneIn(2)) return text
  const at = random.below(text.length)
  return random.pick([
    text.slice(0, at),
    `${text.slice(0, at)}\0${text.slice(at)}`,
    text.slice(0, at) + random.pick(['-', '=', '*', ' ', 'A', '\u00e9']) + text.slice(at + 1),
  ])
}

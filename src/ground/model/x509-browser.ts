/**
 * Says in browsers, which have no parser for certificates, whether a PEM block is a certificate. It compares
 * the DER with the structure of RFC 5280, section 4.1, down to the fields that every certificate has.
 * Signatures, keys and the content of extensions are not read, as in OpenSSL's own parsing.
 */

/** Tags of ASN.1 (X.690); `context(n)` is the constructed form of a context-specific tag. */
const integer = 0x02
const bitString = 0x03
const octetString = 0x04
const oid = 0x06
const utcTime = 0x17
const generalizedTime = 0x18
const sequence = 0x30
const set = 0x31
/** OpenSSL also reads lists (SEQUENCE OF, SET OF) whose tag lacks the bit of constructed values. */
const asList = (tag: number) => [tag, tag & ~0x20]
const context = (number: number) => 0xa0 + number

interface Element {
  readonly tag: number
  readonly content: Uint8Array
}

class MalformedError extends Error {}

/** The elements that follow each other in DER bytes. Throws if one is cut or its length is not definite. */
function* elementsOf(bytes: Uint8Array): Generator<Element> {
  let at = 0
  while (at < bytes.length) {
    const tag = bytes[at] ?? 0
    let length = bytes[at + 1] ?? -1
    at += 2
    if (length === 0x80 || (tag & 0x1f) === 0x1f) throw new MalformedError()
    if (length > 0x80) {
      const octets = length - 0x80
      if (octets > 4) throw new MalformedError()
      length = bytes.subarray(at, at + octets).reduce((sum, octet) => sum * 256 + octet, 0)
      at += octets
    }
    if (length < 0 || at + length > bytes.length) throw new MalformedError()
    yield { tag, content: bytes.subarray(at, at + length) }
    at += length
  }
}

/** Reads the elements of a constructed value in order. */
class Fields {
  readonly #elements: readonly Element[]
  #next = 0

  constructor({ content }: Element) {
    this.#elements = [...elementsOf(content)]
  }

  takeAny(): Element {
    const element = this.#elements[this.#next++]
    if (element === undefined) throw new MalformedError()
    return element
  }

  take(...tags: readonly number[]): Element {
    const element = this.takeAny()
    if (!tags.includes(element.tag)) throw new MalformedError()
    return element
  }

  takeIf(...tags: readonly number[]): Element | undefined {
    return tags.includes(this.#elements[this.#next]?.tag ?? -1) ? this.take(...tags) : undefined
  }

  get rest(): readonly Element[] {
    return this.#elements.slice(this.#next)
  }

  end(): void {
    if (this.#next < this.#elements.length) throw new MalformedError()
  }
}

function checkAlgorithm(element: Element): void {
  const fields = new Fields(element)
  checkOid(fields.take(oid))
  const [parameters, ...others] = fields.rest
  if (others.length > 0) throw new MalformedError()
  if (parameters?.tag === oid) checkOid(parameters)
  if (parameters?.tag === (oid | 0x20)) throw new MalformedError()
}

/** The last octet of every number in an identifier has no continuation bit, and the first is not a padding. */
function checkOid({ content }: Element): void {
  const isPadded = content.some(
    (octet, at) => octet === 0x80 && (at === 0 || (content[at - 1] ?? 0) < 0x80),
  )
  if (content.length === 0 || isPadded || (content.at(-1) ?? 0) >= 0x80) throw new MalformedError()
}

function checkInteger({ content }: Element): void {
  const [first = -1, second = 0] = content
  const isPadded = (first === 0 && second < 0x80) || (first === 0xff && second >= 0x80)
  if (first < 0 || (content.length > 1 && isPadded)) throw new MalformedError()
}

function checkBits({ content }: Element): void {
  const [unused = 8] = content
  if (unused > 7) throw new MalformedError()
}

/** Checks a value of a name: OpenSSL converts texts to UTF-8, to compare names. */
function checkText({ tag, content }: Element): void {
  const size = new Map([
    [0x1e, 2],
    [0x1c, 4],
  ]).get(tag)
  const isPrimitive = tag < 0x20 || tag === sequence
  if (!isPrimitive || content.length % (size ?? 1) !== 0) throw new MalformedError()
  if (tag === 0x0c) strictUtf8.decode(content)
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

function checkName(element: Element): void {
  for (const part of elementsOf(element.content)) {
    if (!asList(set).includes(part.tag)) throw new MalformedError()
    for (const attribute of elementsOf(part.content)) {
      if (attribute.tag !== sequence) throw new MalformedError()
      const fields = new Fields(attribute)
      checkOid(fields.take(oid))
      checkText(fields.takeAny())
      fields.end()
    }
  }
}

function checkKeyInfo(element: Element): void {
  const fields = new Fields(element)
  checkAlgorithm(fields.take(sequence))
  checkBits(fields.take(bitString))
  fields.end()
}

function checkExtensions({ content }: Element): void {
  const [list, ...others] = elementsOf(content)
  if (!asList(sequence).includes(list?.tag ?? -1) || others.length > 0) throw new MalformedError()
  for (const extension of elementsOf(list?.content ?? new Uint8Array())) {
    if (extension.tag !== sequence) throw new MalformedError()
    const fields = new Fields(extension)
    checkOid(fields.take(oid))
    const critical = fields.takeIf(0x01)
    if (critical !== undefined && critical.content.length !== 1) throw new MalformedError()
    fields.take(octetString, octetString | 0x20)
    fields.end()
  }
}

function checkContent(element: Element): void {
  const fields = new Fields(element)
  const version = fields.takeIf(context(0))
  if (version !== undefined) {
    const inner = new Fields(version)
    checkInteger(inner.take(integer))
    inner.end()
  }
  checkInteger(fields.take(integer))
  checkAlgorithm(fields.take(sequence))
  checkName(fields.take(...asList(sequence)))
  const validity = new Fields(fields.take(sequence))
  for (let times = 0; times < 2; times++) validity.take(utcTime, generalizedTime)
  validity.end()
  checkName(fields.take(...asList(sequence)))
  checkKeyInfo(fields.take(sequence))
  for (const number of [0x81, 0x82]) {
    const id = fields.takeIf(number)
    if (id !== undefined) checkBits(id)
  }
  const extensions = fields.takeIf(context(3))
  if (extensions !== undefined) checkExtensions(extensions)
  fields.end()
}

export function isCertificate(pem: string): boolean {
  const [, base64 = ''] = /-----BEGIN CERTIFICATE-----([^-]*)-----END/.exec(pem) ?? []
  try {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
    // Bytes after the certificate are ignored.
    const { value: certificate } = elementsOf(bytes).next()
    if (certificate?.tag !== sequence) return false
    const fields = new Fields(certificate)
    checkContent(fields.take(sequence))
    checkAlgorithm(fields.take(sequence))
    checkBits(fields.take(bitString))
    fields.end()
    return true
  } catch {
    return false
  }
}

// core.wasm without any code of Sluice's: a module that imports nothing, and core.abi.json for the
// codes and offsets. Runs in Node, browsers and every other JavaScript host.

export class Core {
  /**
   * @param {Uint8Array} wasm the bytes of core.wasm
   * @param {any} abi what core.abi.json holds
   */
  constructor(wasm, abi) {
    const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm), {})
    this.call = instance.exports
    this.memory = instance.exports.memory
    this.constants = Object.fromEntries(abi.constants.map(({ name, value }) => [name, value]))
    const version = this.call.abi_version()
    if (version !== abi.version) throw new Error(`core.wasm has ABI version ${version}`)
  }

  /** All memory. Any call may replace it, so read it again after each call. */
  get view() {
    return new DataView(this.memory.buffer)
  }

  /** Scratch for `use` alone: what it allocates is given back in one step. */
  scoped(use) {
    const place = this.call.mark()
    try {
      return use()
    } finally {
      this.call.reset(place)
    }
  }

  /** Address of `size` bytes of scratch. Addresses come back signed. */
  alloc(size) {
    const address = this.call.alloc(size) >>> 0
    if (address === 0) throw new Error(`no room for ${size} bytes`)
    return address
  }

  /** Address of a copy of the bytes. */
  put(bytes) {
    const address = this.alloc(bytes.length + 16)
    new Uint8Array(this.memory.buffer).set(bytes, address)
    return address
  }

  bytes(start, end) {
    return new Uint8Array(this.memory.buffer, start, end - start)
  }

  /** A result that may be a code. */
  check(result) {
    if (result < 0) throw new Error(`code ${result} at ${this.call.last_error_offset()}`)
    return result
  }
}

const encoder = new TextEncoder()
export const utf8 = (text) => encoder.encode(text)
export const latin1 = (text) => Uint8Array.from(text, (char) => char.charCodeAt(0))
export const fromLatin1 = (bytes) => String.fromCharCode(...bytes)

/** The bytes of all parts, one after the other. */
export function join(parts) {
  const whole = new Uint8Array(parts.reduce((total, { length }) => total + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

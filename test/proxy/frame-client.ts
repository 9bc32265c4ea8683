import {
  clientPreface,
  frameFlags,
  frameHead,
  frameTypes,
  settingsFrame,
} from '../../src/engines/http/http2/frames.ts'
import { HpackDecoder } from '../../src/engines/http/http2/hpack-decoder.ts'
import { RawConnection } from './engine-rig.ts'

/** One frame as it came. */
export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export type Field = readonly [name: string, value: string]

/** A field as a literal without any table, so that tests say what they send. */
export function literal([name, value]: Field): string {
  const string = (text: string) =>
    text.length < 127
      ? String.fromCharCode(text.length) + text
      : `\x7f${varint(text.length - 127)}${text}`
  return `\0${string(name)}${string(value)}`
}

function varint(value: number): string {
  let out = ''
  let left = value
  while (left >= 128) {
    out += String.fromCharCode(0x80 | (left & 0x7f))
    left = Math.floor(left / 128)
  }
  return out + String.fromCharCode(left)
}

export const get: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'x.example'],
  [':path', '/'],
]
export const post: readonly Field[] = [[':method', 'POST'], ...get.slice(1)]

export const { endStream, endHeaders } = frameFlags

export function headers(
  stream: number,
  fields: readonly Field[],
  flags = endHeaders | endStream,
): string {
  const block = fields.map(literal).join('')
  return frameHead(block.length, frameTypes.headers, flags, stream) + block
}

export function data(stream: number, payload: string, flags = 0): string {
  return frameHead(payload.length, frameTypes.data, flags, stream) + payload
}

export function frame(type: number, flags: number, stream: number, payload = ''): string {
  return frameHead(payload.length, type, flags, stream) + payload
}

/** Speaks HTTP/2 frame by frame, so that it can break every rule. */
export class FrameClient {
  readonly connection: RawConnection
  readonly decoder = new HpackDecoder()
  readonly frames: Frame[] = []
  readonly #heads: { readonly stream: number; readonly fields: string[] }[] = []
  #read: number

  /** `from`: bytes that come before the first frame. */
  constructor(connection: RawConnection, from = 0) {
    this.connection = connection
    this.#read = from
  }

  static async connect(
    port: number,
    settings: readonly (readonly [number, number])[] = [],
  ): Promise<FrameClient> {
    const client = new FrameClient(await RawConnection.connect(port))
    client.send(clientPreface + settingsFrame(settings))
    return client
  }

  send(...frames: string[]): this {
    this.connection.write(frames.join(''))
    return this
  }

  parse(): void {
    const { text } = this.connection
    for (;;) {
      const head = Buffer.from(text.slice(this.#read, this.#read + 9), 'latin1')
      if (head.length < 9) return
      const length = head.readUIntBE(0, 3)
      if (text.length < this.#read + 9 + length) return
      this.frames.push({
        type: head[3] ?? 0,
        flags: head[4] ?? 0,
        stream: head.readUInt32BE(5),
        payload: Buffer.from(text.slice(this.#read + 9, this.#read + 9 + length), 'latin1'),
      })
      this.#read += 9 + length
    }
  }

  /** The first matching frame once it arrives; undefined if the connection ends first. */
  async find(fits: (frame: Frame) => boolean): Promise<Frame | undefined> {
    await this.connection.until(() => {
      this.parse()
      return this.frames.some(fits) || this.connection.ended || this.connection.closed
    })
    return this.frames.find(fits)
  }

  async until(condition: () => boolean): Promise<void> {
    await this.connection.until(() => {
      this.parse()
      return condition() || this.connection.closed
    })
  }

  /** Code of the GOAWAY or RST_STREAM (with its stream) that comes first; undefined for a bare end. */
  async refusal(): Promise<string | undefined> {
    const found = await this.find(
      ({ type, payload }) =>
        type === frameTypes.rstStream ||
        (type === frameTypes.goaway && payload.readUInt32BE(4) !== 0),
    )
    if (found === undefined) return undefined
    const isStream = found.type === frameTypes.rstStream
    const code = found.payload.readUInt32BE(isStream ? 0 : 4)
    return isStream ? `stream ${found.stream}: ${code}` : `connection: ${code}`
  }

  /** Waits for the end of a stream and tells what came on it. */
  async response(stream: number): Promise<{ fields: string[]; body: string; trailers: string[] }> {
    await this.find(
      (frame) =>
        frame.stream === stream &&
        (frame.type === frameTypes.rstStream ||
          ((frame.type === frameTypes.data || frame.type === frameTypes.headers) &&
            (frame.flags & endStream) !== 0)),
    )
    const heads = this.headsOf(stream)
    const body = this.#of(stream, frameTypes.data)
      .map(({ payload }) => payload.toString('latin1'))
      .join('')
    return { fields: heads[0] ?? [], body, trailers: heads[1] ?? [] }
  }

  /** The fields of each head on a stream. Blocks are decoded once, in the order in which they came. */
  headsOf(stream: number): string[][] {
    const blocks = this.frames.filter(({ type }) => type === frameTypes.headers)
    for (const { stream: of, payload } of blocks.slice(this.#heads.length)) {
      this.#heads.push({ stream: of, fields: this.#fields(payload) })
    }
    return this.#heads.filter((head) => head.stream === stream).map(({ fields }) => fields)
  }

  #of(stream: number, type: number): Frame[] {
    return this.frames.filter((frame) => frame.stream === stream && frame.type === type)
  }

  #fields(block: Buffer): string[] {
    const fields: string[] = []
    const onField = ({ name, value }: { name: string; value: string }) =>
      fields.push(`${name}: ${value}`)
    this.decoder.decode(block, 0, block.length, { onField })
    return fields
  }

  /** Bytes of data that came on a stream. */
  dataOf(stream: number): number {
    return this.#of(stream, frameTypes.data).reduce((sum, { payload }) => sum + payload.length, 0)
  }
}

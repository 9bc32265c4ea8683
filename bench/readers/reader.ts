/** What a measured reader is, and the parts that several of them use. */
import { createIoCore } from '../../src/engines/core/index.ts'
import { compileMask, type Mask } from '../../src/engines/core/regex-mask.ts'
import { HeadReader } from '../../src/engines/http/message/head-reader.ts'

export type Push = (piece: Buffer) => void

export interface Reader {
  readonly id: string
  /** Bytes of the smaller input. */
  readonly size: number
  bytes(size: number): Buffer
  /** A fresh reader. Readers that take whole texts have `isWhole`. */
  start(): Push
  readonly isWhole?: boolean
}

export const filled = (unit: string | Buffer, size: number): Buffer => {
  const one = Buffer.from(unit)
  return Buffer.alloc(Math.ceil(size / one.length) * one.length, one)
}
export const ignore = () => {}
export const large = 1 << 30

const core = createIoCore({ memoryPages: 256 })
export const heads = new HeadReader(core, core.createHead({ maxFields: 4096 }))
export const maskOf = (pattern: string): Mask => {
  const compiled = compileMask([{ pattern, replacement: '<masked>' }])
  if (!compiled.ok) throw new Error(compiled.message)
  return compiled.mask
}
export const mask = maskOf('secret-[0-9]+')

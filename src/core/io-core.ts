import {
  BODY_CONSUMED,
  BODY_FLAGS,
  BODY_SIZE,
  BODY_SPAN_COUNT,
  BODY_SPANS,
  BODY_TRAILER,
  ERROR_MEMORY,
} from './abi.ts'
import { CoreError } from './errors.ts'
import { HeadRecord } from './head-record.ts'
import { CoreInstance } from './instance.ts'
import { PatternPool } from './pattern-pool.ts'
import { RouteTable, type RouteTableOptions } from './route-table.ts'

export interface IoCoreOptions {
  /** All memory this instance will ever have, in pages of 64 KiB. */
  readonly memoryPages: number
  /** A compiled module; the one of `loadCore` by default. */
  readonly module?: WebAssembly.Module
}

export interface HeadOptions {
  /** Fields that a head may have; more are refused with 431. Default 100, at most 4096. */
  readonly maxFields?: number
  /** Bytes for `assign`; default 0, which makes a record without it. */
  readonly textBytes?: number
}

/**
 * An instance whose memory never grows, so that its views never detach and sockets can read
 * straight into it. Everything it is asked to hold comes out of one budget.
 */
export class IoCore extends CoreInstance {
  /** Regexes of all route tables of this instance. */
  readonly patterns: PatternPool

  constructor(options: IoCoreOptions) {
    super(options.module)
    const { exports } = this
    if (exports.reserve(options.memoryPages) !== 0) {
      throw new CoreError(ERROR_MEMORY, `reserving ${options.memoryPages} pages`)
    }
    exports.seal()
    this.refresh()
    this.patterns = new PatternPool(this)
  }

  /** Bytes of the budget that nothing has asked for yet. */
  get untouchedBytes(): number {
    return this.exports.untouched()
  }

  createHead(options: HeadOptions = {}): HeadRecord {
    return new HeadRecord(this, options.maxFields ?? 100, options.textBytes ?? 0)
  }

  createChunkedBody(): ChunkedBody {
    return new ChunkedBody(this)
  }

  createRouteTable(options: RouteTableOptions = {}): RouteTable {
    return new RouteTable(this, options)
  }

  /**
   * Reads the request head in bytes [start, end) of memory. 0: complete; INCOMPLETE: call again
   * with more bytes and `resume` = head.resume; else refused, `statusOfRefusal` gives the status.
   * `maxBytes` bounds the head (414 or 431). Throws CoreTrap.
   */
  parseRequestHead(
    head: HeadRecord,
    start: number,
    end: number,
    resume: number,
    maxBytes: number,
  ): number {
    if (this.trap !== undefined) throw this.trap
    try {
      return this.exports.head_request(head.address, start, end, resume, maxBytes)
    } catch (error) {
      throw this.failed('head_request', error)
    }
  }

  /** The same for a response head; refusals have status 502. */
  parseResponseHead(
    head: HeadRecord,
    start: number,
    end: number,
    resume: number,
    maxBytes: number,
  ): number {
    if (this.trap !== undefined) throw this.trap
    try {
      return this.exports.head_response(head.address, start, end, resume, maxBytes)
    } catch (error) {
      throw this.failed('head_response', error)
    }
  }

  /** Reads whole trailer field lines, as a chunked body reports them: 0 or a refusal. */
  parseTrailers(head: HeadRecord, start: number, end: number): number {
    return this.run('head_trailers', (exports) => exports.head_trailers(head.address, start, end))
  }

  /** Where the last refused call gave up, in bytes from its start; -1 when there is no place. */
  get errorOffset(): number {
    return this.exports.last_error_offset()
  }
}

/** The scanner of one chunked body at a time; `start` readies it for the next body. */
export class ChunkedBody {
  readonly address: number
  readonly #core: IoCore
  readonly #base: number

  /** Made by `IoCore.createChunkedBody`. */
  constructor(core: IoCore) {
    this.#core = core
    this.address = core.allocate(BODY_SIZE)
    this.#base = this.address >> 2
    this.start(0)
  }

  #get(offset: number): number {
    return this.#core.words[this.#base + (offset >> 2)] ?? 0
  }

  /** A body begins; its trailer section may have `trailerLimit` bytes. */
  start(trailerLimit: number): void {
    this.#core.run('chunks_start', (exports) => exports.chunks_start(this.address, trailerLimit))
  }

  /** Reads bytes [start, end): CHUNKS_MORE, CHUNKS_END, CHUNKS_AGAIN or a refusal. Throws CoreTrap. */
  read(start: number, end: number): number {
    const core = this.#core
    if (core.trap !== undefined) throw core.trap
    try {
      return core.exports.chunks_read(this.address, start, end)
    } catch (error) {
      throw core.failed('chunks_read', error)
    }
  }

  /** Address after the last byte that the last read took. */
  get consumed(): number {
    return this.#get(BODY_CONSUMED)
  }

  /** BODY_HAS_* bits: with any of them the raw bytes must not be forwarded as they are. */
  get flags(): number {
    return this.#get(BODY_FLAGS)
  }

  /** Data spans that the last read found. */
  get spanCount(): number {
    return this.#get(BODY_SPAN_COUNT)
  }

  spanStart(index: number): number {
    return this.#get(BODY_SPANS + index * 8)
  }

  spanEnd(index: number): number {
    return this.#get(BODY_SPANS + index * 8 + 4)
  }

  /** What the last read saw of the trailer fields; -1 when nothing. */
  get trailerStart(): number {
    return this.#get(BODY_TRAILER)
  }

  get trailerEnd(): number {
    return this.#get(BODY_TRAILER + 4)
  }
}

/** A core with fixed memory, ready to use. Throws when the module is missing or memory is refused. */
export function createIoCore(options: IoCoreOptions): IoCore {
  return new IoCore(options)
}

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
  /** Size of this instance's memory in pages of 64 KiB; it never grows. */
  readonly memoryPages: number
  /** A compiled module. Default: the result of `loadCore`. */
  readonly module?: WebAssembly.Module
}

export interface HeadOptions {
  /** Maximum number of fields, up to 4096; a head with more is refused with 431. Default 100. */
  readonly maxFields?: number
  /** Bytes of text space for `assign`. Default 0: `assign` cannot be used. */
  readonly textBytes?: number
}

/**
 * An instance whose memory never grows, so that its views never detach and sockets can read
 * directly into it. All of its blocks and tables share one budget.
 */
export class IoCore extends CoreInstance {
  /** Regexes that all route tables of this instance share. */
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

  /** Number of bytes of the budget that were never used. */
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
   * Reads the request head in bytes [start, end) of memory. Returns 0 if the head is complete, and
   * INCOMPLETE if more bytes are needed: then call again with `resume` = head.resume. Any other code
   * is a refusal, whose status `statusOfRefusal` returns. A head with more than `maxBytes` is refused
   * (414 or 431). Throws CoreTrap.
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

  /** Like `parseRequestHead`, for a response head; refusals have status 502. */
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

  /** Reads complete trailer field lines, as a chunked body reports them. Returns 0 or a refusal. */
  parseTrailers(head: HeadRecord, start: number, end: number): number {
    return this.run('head_trailers', (exports) => exports.head_trailers(head.address, start, end))
  }

  /** Byte offset at which the last refused call stopped; -1 if it has none. */
  get errorOffset(): number {
    return this.exports.last_error_offset()
  }
}

/** Scans one chunked body at a time; `start` prepares it for the next body. */
export class ChunkedBody {
  readonly address: number
  readonly #core: IoCore
  readonly #base: number

  /** Call `IoCore.createChunkedBody` instead. */
  constructor(core: IoCore) {
    this.#core = core
    this.address = core.allocate(BODY_SIZE)
    this.#base = this.address >> 2
    this.start(0)
  }

  #get(offset: number): number {
    return this.#core.words[this.#base + (offset >> 2)] ?? 0
  }

  /** Starts a body whose trailer section may have up to `trailerLimit` bytes. */
  start(trailerLimit: number): void {
    this.#core.run('chunks_start', (exports) => exports.chunks_start(this.address, trailerLimit))
  }

  /** Reads [start, end). Returns CHUNKS_MORE, CHUNKS_END, CHUNKS_AGAIN or a refusal. Throws CoreTrap. */
  read(start: number, end: number): number {
    const core = this.#core
    if (core.trap !== undefined) throw core.trap
    try {
      return core.exports.chunks_read(this.address, start, end)
    } catch (error) {
      throw core.failed('chunks_read', error)
    }
  }

  /** Address after the last byte that the last read consumed. */
  get consumed(): number {
    return this.#get(BODY_CONSUMED)
  }

  /** BODY_HAS_* bits. If any bit is set, the raw bytes must not be forwarded as they are. */
  get flags(): number {
    return this.#get(BODY_FLAGS)
  }

  /** Number of data spans in the last read. */
  get spanCount(): number {
    return this.#get(BODY_SPAN_COUNT)
  }

  spanStart(index: number): number {
    return this.#get(BODY_SPANS + index * 8)
  }

  spanEnd(index: number): number {
    return this.#get(BODY_SPANS + index * 8 + 4)
  }

  /** Start address of the trailer fields in the last read; -1 if it had none. */
  get trailerStart(): number {
    return this.#get(BODY_TRAILER)
  }

  get trailerEnd(): number {
    return this.#get(BODY_TRAILER + 4)
  }
}

/** Creates a core with fixed memory. Throws if the module is missing or memory cannot be allocated. */
export function createIoCore(options: IoCoreOptions): IoCore {
  return new IoCore(options)
}

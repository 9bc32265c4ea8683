// Rate buckets of one thread: a table in a block, limits as numbers, time as an argument.
import { utf8 } from './core.mjs'

export class Rates {
  constructor(core, groups = 4, keyBytes = 48) {
    this.core = core
    this.table = core.call.block_new(core.check(core.call.rate_size(groups, keyBytes))) >>> 0
    core.scoped(() => {
      const secret = core.put(crypto.getRandomValues(new Uint8Array(16)))
      core.check(core.call.rate_format(this.table, groups, keyBytes, secret))
    })
  }

  /** `action` is take, peek or charge; the limit is the ms of one unit and the units of a full bucket. */
  ask(action, id, key, limit, amount, now) {
    const { core } = this
    const { RATE_SIZE, RATE_WAIT, RATE_REMAINING, RATE_RESET } = core.constants
    return core.scoped(() => {
      const out = core.alloc(RATE_SIZE)
      const bytes = utf8(key)
      const args = [bytes.length, limit.period, limit.capacity, amount, now, out]
      const result = core.check(
        core.call[`rate_${action}`](this.table, id, core.put(bytes), ...args),
      )
      const number = (offset) => core.view.getFloat64(out + offset, true)
      return {
        isAdmitted: result === 1,
        wait: number(RATE_WAIT),
        remaining: number(RATE_REMAINING),
        reset: number(RATE_RESET),
      }
    })
  }

  free() {
    this.core.call.block_free(this.table)
  }
}

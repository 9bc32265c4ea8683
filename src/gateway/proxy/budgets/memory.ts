/**
 * Memory of all threads with the allowances of this proxy. The main thread opens and frees accounts; workers reserve
 * and settle. Each word is changed by atomic operations only.
 */

/** Maximum number of accounts. The system allocates only the pages that are used. */
const maxAccounts = 262_144
/** Maximum number of reservations of a worker whose amounts survive its death. */
const maxReservations = 65_536

const wordsOfAccount = 4
/** What may still be reserved; negative after requests that have cost more than was reserved for them. */
const available = 0
/** What has been charged. */
const charged = 1
/** Number of requests that were charged. */
const requests = 2
/** The greatest amount that was missing since the main thread last looked. */
const want = 3

/**
 * The words are integers of 64 bits. No account is charged more than this, nor any of its words set beyond it: the
 * amount of a budget is smaller, so nothing remains then.
 */
const maxWord = 2n ** 62n

/** Flags of an account: the first bit, and behind it the soft limit that is reached, in percent. */
const isExhausted = 1

export interface BudgetMemory {
  readonly accounts: BigInt64Array<SharedArrayBuffer>
  readonly flags: Int32Array<SharedArrayBuffer>
  /** The first word is 1 while the ledger is out of reach; the second one changes with every use. */
  readonly shared: Int32Array<SharedArrayBuffer>
}

/** The reservations of one worker: account numbers from 1, and amounts. */
export interface ReservationMemory {
  readonly accounts: Int32Array<SharedArrayBuffer>
  readonly amounts: BigInt64Array<SharedArrayBuffer>
}

export const createBudgetMemory = (): BudgetMemory => ({
  accounts: new BigInt64Array(new SharedArrayBuffer(maxAccounts * wordsOfAccount * 8)),
  flags: new Int32Array(new SharedArrayBuffer(maxAccounts * 4)),
  shared: new Int32Array(new SharedArrayBuffer(8)),
})

export const createReservationMemory = (): ReservationMemory => ({
  accounts: new Int32Array(new SharedArrayBuffer(maxReservations * 4)),
  amounts: new BigInt64Array(new SharedArrayBuffer(maxReservations * 8)),
})

/** The use of one account. */
interface AccountUse {
  readonly available: bigint
  readonly charged: bigint
  readonly requests: number
}

/** Access to the accounts, by their numbers. */
export class SharedAccounts {
  readonly #memory: BudgetMemory

  constructor(memory: BudgetMemory) {
    this.#memory = memory
  }

  // Main thread -----------------------------------------------------------------------------------

  readonly size = maxAccounts

  /** Opens an account that no thread uses. */
  open(account: number, amount: bigint): void {
    const { accounts, flags } = this.#memory
    const at = account * wordsOfAccount
    for (let word = 0; word < wordsOfAccount; word++) Atomics.store(accounts, at + word, 0n)
    Atomics.store(flags, account, 0)
    Atomics.store(accounts, at + available, amount)
  }

  use(account: number): AccountUse {
    const { accounts } = this.#memory
    const at = account * wordsOfAccount
    // In this order: a settlement changes what is available last, so it is never seen before its charge.
    const left = Atomics.load(accounts, at + available)
    return {
      available: left,
      charged: Atomics.load(accounts, at + charged),
      requests: Number(Atomics.load(accounts, at + requests)),
    }
  }

  add(account: number, amount: bigint): void {
    Atomics.add(this.#memory.accounts, account * wordsOfAccount + available, amount)
  }

  /** Takes what is available. Returns the amount. */
  takeAll(account: number): bigint {
    const { accounts } = this.#memory
    const at = account * wordsOfAccount + available
    for (let left = Atomics.load(accounts, at); left > 0n; ) {
      const found = Atomics.compareExchange(accounts, at, left, 0n)
      if (found === left) return left
      left = found
    }
    return 0n
  }

  takeWant(account: number): bigint {
    return Atomics.exchange(this.#memory.accounts, account * wordsOfAccount + want, 0n)
  }

  setFlags(account: number, exhausted: boolean, softLimit: number): void {
    Atomics.store(this.#memory.flags, account, (softLimit << 1) | (exhausted ? isExhausted : 0))
  }

  setUnreachable(value: boolean): void {
    Atomics.store(this.#memory.shared, 0, value ? 1 : 0)
  }

  /** A number that changes with every reservation and settlement. */
  get activity(): number {
    return Atomics.load(this.#memory.shared, 1)
  }

  // Workers ---------------------------------------------------------------------------------------

  get isUnreachable(): boolean {
    return Atomics.load(this.#memory.shared, 0) === 1
  }

  isExhausted(account: number): boolean {
    return (Atomics.load(this.#memory.flags, account) & isExhausted) === isExhausted
  }

  /** The highest soft limit that is reached, in percent; 0 if none is. */
  softLimit(account: number): number {
    return Atomics.load(this.#memory.flags, account) >> 1
  }

  /** Takes an amount if at least that much is available, or would be with an overdraft. */
  reserve(account: number, amount: bigint, overdraft: bigint): boolean {
    const { accounts, shared } = this.#memory
    const at = account * wordsOfAccount
    for (let left = Atomics.load(accounts, at + available); left + overdraft >= amount; ) {
      const found = Atomics.compareExchange(accounts, at + available, left, left - amount)
      if (found === left) {
        Atomics.add(shared, 1, 1)
        return true
      }
      left = found
    }
    // A greater want of another thread may be lost, which then comes again with its next request.
    const missing = amount < maxWord ? amount : maxWord
    if (Atomics.load(accounts, at + want) < missing) Atomics.store(accounts, at + want, missing)
    Atomics.add(shared, 1, 1)
    return false
  }

  settle(account: number, reserved: bigint, actual: bigint, count: boolean): void {
    const { accounts, shared } = this.#memory
    const at = account * wordsOfAccount
    if (count) Atomics.add(accounts, at + requests, 1n)
    const spent = actual === 0n ? 0n : addUpTo(accounts, at + charged, actual)
    if (reserved !== spent) Atomics.add(accounts, at + available, reserved - spent)
    Atomics.add(shared, 1, 1)
  }
}

/** Adds an amount to a word, but no more than fits. Returns what was added. */
function addUpTo(words: BigInt64Array<SharedArrayBuffer>, at: number, amount: bigint): bigint {
  for (let before = Atomics.load(words, at); ; ) {
    const room = maxWord - before
    const added = amount < room ? amount : room
    const found = Atomics.compareExchange(words, at, before, before + added)
    if (found === before) return added
    before = found
  }
}

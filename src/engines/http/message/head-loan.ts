/** A head that refers to bytes in borrowed memory. */
export interface Borrower {
  /** Copies the bytes, unless the head no longer refers to the memory of this loan. */
  onLoanEnd(loan: HeadLoan): void
}

/**
 * Memory in which heads are read and which is overwritten by the next read. A head in it is not copied as
 * long as the memory stays unchanged, since most responses are forwarded during the read that brought
 * them. The owner of the memory calls `end` before anything can overwrite it, whether the exchange of
 * that head still runs or not: the connection may serve another exchange already.
 */
export class HeadLoan {
  readonly memory: Buffer
  #borrower: Borrower | undefined

  constructor(memory: Buffer) {
    this.memory = memory
  }

  /** Lends the memory to a head. There is one borrower at a time. */
  lendTo(borrower: Borrower): void {
    if (this.#borrower !== borrower) this.end()
    this.#borrower = borrower
  }

  /** Lets the borrower copy what it still refers to. */
  end(): void {
    const borrower = this.#borrower
    if (borrower === undefined) return
    this.#borrower = undefined
    borrower.onLoanEnd(this)
  }
}

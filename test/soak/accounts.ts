/** Compares lines of the access log with what clients got and with what vendors billed. */
import type { Ledger } from './ledger.ts'
import type { Bill, Bills } from './vendors.ts'

interface LogLine {
  readonly tag?: string
  readonly 'http.status'?: number
  readonly 'gen_ai.usage.input_tokens'?: number
  readonly 'gen_ai.usage.output_tokens'?: number
}

interface Expected {
  readonly status: number
  /** Whether the request was for a model, so that it has a bill. */
  readonly isBilled: boolean
  readonly at: number
}

/** A line may wait so long in the gateway. */
const patienceMs = 10_000
/** Tags that are remembered to find a second line of the same exchange. */
const rememberedTags = 20_000

export class Accounts {
  /** Exchanges whose line and bill are as they must be. */
  matched = 0
  lines = 0
  readonly #ledger: Ledger
  readonly #bills: Bills
  readonly #expected = new Map<string, Expected>()
  readonly #lines = new Map<string, LogLine>()
  #recent = new Set<string>()
  #older = new Set<string>()
  #rest = ''

  constructor(ledger: Ledger, bills: Bills) {
    this.#ledger = ledger
    this.#bills = bills
  }

  /** Reads standard output of the gateway. */
  readonly read = (text: string): void => {
    const lines = `${this.#rest}${text}`.split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#take(line)
  }

  /** The line of an exchange that nothing was expected of yet. */
  lineOf(tag: string): string {
    const line = this.#lines.get(tag)
    return line === undefined ? 'none' : JSON.stringify(line)
  }

  /** The client has its whole response. */
  expect(tag: string, status: number, isBilled: boolean): void {
    this.#expected.set(tag, { status, isBilled, at: performance.now() })
    this.#match(tag)
  }

  /** Lines of exchanges that nothing is expected of are dropped after a while. */
  sweep(): void {
    const now = performance.now()
    for (const [tag, { at }] of this.#expected) {
      if (now - at < patienceMs) break
      this.#expected.delete(tag)
      this.#bills.delete(tag)
      // Lines that wait in a worker are lost with it.
      if (this.#ledger.isExcused(['gateway'], at - patienceMs, at)) continue
      this.#report(tag, 'has no line in the access log', '')
    }
    if (this.#recent.size < rememberedTags) return
    for (const tag of this.#older) {
      this.#lines.delete(tag)
      this.#bills.delete(tag)
    }
    this.#older = this.#recent
    this.#recent = new Set()
  }

  #take(text: string): void {
    if (!text.startsWith('{')) return
    const line = JSON.parse(text) as LogLine
    this.lines++
    const { tag } = line
    if (tag === undefined) return
    if (this.#recent.has(tag) || this.#older.has(tag)) {
      this.#report(tag, 'has two lines in the access log', text)
      return
    }
    this.#recent.add(tag)
    this.#lines.set(tag, line)
    this.#match(tag)
  }

  #match(tag: string): void {
    const [expected, line] = [this.#expected.get(tag), this.#lines.get(tag)]
    if (expected === undefined || line === undefined) return
    this.#expected.delete(tag)
    this.#lines.delete(tag)
    const text = JSON.stringify(line)
    if (line['http.status'] !== expected.status) {
      this.#report(tag, `is logged with another status than ${expected.status}`, text)
    }
    const bill = this.#bills.get(tag)
    this.#bills.delete(tag)
    if (expected.isBilled) this.#checkBill(tag, line, bill, text)
    this.matched++
  }

  #checkBill(tag: string, line: LogLine, bill: Bill | undefined, text: string): void {
    const input = line['gen_ai.usage.input_tokens']
    const output = line['gen_ai.usage.output_tokens']
    if (bill !== undefined && input === bill.input && output === bill.output) return
    const billed = bill === undefined ? 'nothing' : `${bill.input} and ${bill.output} tokens`
    this.#report(
      tag,
      `is logged with ${input} and ${output} tokens, the vendor billed ${billed}`,
      text,
    )
  }

  #report(tag: string, text: string, bytes: string): void {
    this.#ledger.report({ invariant: 'accounts', exchange: tag, text, bytes })
  }
}

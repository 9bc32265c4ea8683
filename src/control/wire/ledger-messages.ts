/** Reports of holders and updates of the ledger, as the configuration stream carries them: JSON, with integers as text. */
import {
  count,
  flag,
  list,
  optional,
  problemOf,
  record,
  type Shape,
  text,
  where,
} from '../../ground/base/shape.ts'
import type { HolderReport, HolderUpdate } from '../../ground/model/budgets.ts'

const integer = where(text, 'an integer', (value) => /^-?\d{1,40}$/.test(value))
const account = { budget: text, value: text, window: count }

const reportShape = record({
  holder: text,
  sequence: count,
  message: count,
  isLeaving: optional(flag),
  entries: list(
    record({
      ...account,
      charged: integer,
      returned: integer,
      requests: count,
      want: integer,
      granted: integer,
      isDrained: flag,
    }),
  ),
})

const updateShape = record({
  holder: text,
  counted: count,
  answered: count,
  isReleased: flag,
  windows: list(
    record({
      budget: text,
      window: count,
      endsAt: optional(count),
      share: count,
      generation: count,
    }),
  ),
  accounts: list(
    record({
      ...account,
      granted: integer,
      limit: integer,
      spent: integer,
      isRecalled: flag,
      isExhausted: flag,
      softLimit: count,
    }),
  ),
})

/** An update, with the holder that it is for. */
export interface AddressedUpdate extends HolderUpdate {
  readonly holder: string
}

const encode = (value: object): Uint8Array =>
  Buffer.from(JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? `${one}` : one)))

/** @throws if the bytes are not a message of the shape */
function decode<T>(bytes: Uint8Array, shape: Shape<T>, amounts: ReadonlySet<string>): unknown {
  const value: unknown = JSON.parse(Buffer.from(bytes).toString())
  const problem = problemOf(shape, value)
  if (problem !== undefined) throw new Error(`a message of the ledger is not valid: ${problem}`)
  return reviveAmounts(value, amounts)
}

/** Only the fields of accounts have amounts, so a value of a budget is never taken for one. */
function reviveAmounts(value: unknown, amounts: ReadonlySet<string>): unknown {
  const { entries, accounts, ...rest } = value as Record<string, unknown>
  const revive = (one: unknown) =>
    Object.fromEntries(
      Object.entries(one as object).map(([name, field]) => [
        name,
        amounts.has(name) ? BigInt(field) : field,
      ]),
    )
  return {
    ...rest,
    ...(Array.isArray(entries) && { entries: entries.map(revive) }),
    ...(Array.isArray(accounts) && { accounts: accounts.map(revive) }),
  }
}

const reported = new Set(['charged', 'returned', 'want', 'granted'])
const updated = new Set(['granted', 'limit', 'spent'])

export const encodeReport = (report: HolderReport): Uint8Array => encode(report)

/** @throws if the bytes are not a report */
export const decodeReport = (bytes: Uint8Array): HolderReport =>
  decode(bytes, reportShape, reported) as HolderReport

export const encodeUpdate = (update: AddressedUpdate): Uint8Array => encode(update)

/** @throws if the bytes are not an update */
export const decodeUpdate = (bytes: Uint8Array): AddressedUpdate =>
  decode(bytes, updateShape, updated) as AddressedUpdate

/**
 * What core.wasm and core-rate-shared.wasm have in common: rate buckets. `assembly/core.abi.json`
 * tells what each function does; period, now and times of the record are milliseconds.
 */
export interface RateExports {
  rate_size(groups: number, keyBytes: number): number
  rate_format(table: number, groups: number, keyBytes: number, secret: number): number
  rate_owner(number: number): number
  rate_release(table: number, dead: number): number
  rate_take: RateDemand
  rate_peek: RateDemand
  rate_charge: RateDemand
  rate_cell(table: number, id: number, now: number): number
  rate_take_at(
    cell: number,
    id: number,
    period: number,
    capacity: number,
    amount: number,
    now: number,
    out: number,
  ): number
  rate_reap(table: number, now: number): number
  rate_count(table: number): number
  rate_rescale(table: number, id: number, ratio: number, now: number): number
  rate_move(from: number, to: number, now: number): number
}

export type RateDemand = (
  table: number,
  id: number,
  key: number,
  length: number,
  period: number,
  capacity: number,
  amount: number,
  now: number,
  out: number,
) => number

/** The exports of core-rate-shared.wasm; its memory is imported. */
export interface SharedRateExports extends RateExports {
  abi_version(): number
  features(): number
  last_error(): number
}

// Runs everything in a host. `cases` has the parsed case files, `vendor` the URL of test/packages/vendor.ts.
import { runCases } from './cases.mjs'
import { runUse } from './use.mjs'

export async function runAll({ cases, vendor }) {
  return { cases: await runCases(cases), use: await runUse(vendor) }
}

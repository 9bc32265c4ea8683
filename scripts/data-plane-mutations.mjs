// `npm run data-plane-mutations [-- --record] [--processes N]`: whether the simulation of the data plane finds each
// mutation with the recorded seeds. Exit code: 0 it finds all, 1 it misses one, 2 wrong usage.
import { buildIfNeeded, runCommand } from './run-command.mjs'

buildIfNeeded()
const { parseOptions, runMutations, usage } = await import(
  '../test/data-plane-simulation/first-seeds.ts'
)
await runCommand({ parseOptions, run: runMutations, usage })

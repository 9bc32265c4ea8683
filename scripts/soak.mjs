// `npm run soak -- [--minutes M] [--seed N] [--connections C]`: the gateway between real clients and real
// servers, with faults. Exit code: 0 no violation, 1 a violation, 2 wrong usage or a program is missing,
// 130 interrupted.
import { buildIfNeeded, runCommand } from './run-command.mjs'

buildIfNeeded()
const { parseOptions, usage } = await import('../test/soak/options.ts')
const { runSoak } = await import('../test/soak/main.ts')
await runCommand({ parseOptions, run: runSoak, usage })

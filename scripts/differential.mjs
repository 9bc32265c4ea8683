// `npm run differential -- [CASE…] [--without nginx|envoy]`: the same traffic through Sluice, nginx and Envoy.
// Exit code: 0 every difference is explained, 1 one is not or an explanation is stale, 2 wrong usage or a
// program is missing.
import { buildIfNeeded, runCommand } from './run-command.mjs'

buildIfNeeded()
const { parseOptions, runDifferential, usage } = await import('../test/differential/main.ts')
await runCommand({ parseOptions, run: runDifferential, usage })

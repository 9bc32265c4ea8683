// `npm run …-mutations [-- --record] [--processes N]`: whether a simulation finds each of its mutations with the
// recorded seeds. The first argument is its folder in test/.
// Exit code: 0 it finds all, 1 it misses one, 2 wrong usage.
import { buildIfNeeded, runCommand } from './run-command.mjs'

buildIfNeeded()
const [folder] = process.argv.splice(2, 1)
const { MutationRun, parseOptions, usageOf } = await import('../test/virtual-time/first-seeds.ts')
const { mutations } = await import(`../test/${folder}/mutations.ts`)
await runCommand({
  parseOptions,
  run: (options, print) => new MutationRun(folder, mutations, print).run(options),
  usage: usageOf(folder.replace('simulation', 'mutations')),
})

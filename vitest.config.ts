import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{src,events,test,examples,console}/**/*.test.ts'],
    pool: 'forks',
    // Half of the time of most files is spent waiting for the processes that they have started.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    testTimeout: 120_000,
    hookTimeout: 120_000,
    retry: 0,
    reporters: ['default'],
    globalSetup: ['test/support/absent-parts.ts'],
  },
})

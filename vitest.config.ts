import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{src,events,test,examples}/**/*.test.ts'],
    pool: 'forks',
    testTimeout: 120_000,
    hookTimeout: 120_000,
    retry: 0,
    reporters: ['default'],
    globalSetup: ['src/testing/absent-parts.ts'],
  },
})

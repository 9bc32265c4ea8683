// Bundles sources for browsers with esbuild. A file `NAME-browser.ts` replaces `NAME.ts` in the same folder,
// the package `buffer` provides `Buffer`, and modules that only proxies load (`import()` in src/gateway/policies,
// src/gateway/backends and src/engines/auth) are omitted.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '..')

const browserSources = {
  name: 'browser-sources',
  setup(builder) {
    builder.onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ path, resolveDir, kind }) => {
      const file = join(resolveDir, path)
      if (
        kind === 'dynamic-import' &&
        /\/src\/(gateway\/(policies|backends)|engines\/auth)\//.test(file)
      ) {
        return { path: 'proxies-only', namespace: 'proxies-only' }
      }
      const counterpart = file.replace(/\.ts$/, '-browser.ts')
      return existsSync(counterpart) ? { path: counterpart } : undefined
    })
    builder.onLoad({ filter: /.*/, namespace: 'proxies-only' }, () => ({ contents: 'export {}' }))
  },
}

/** Bundles for browsers; `options` are those of esbuild. */
export const bundleForBrowsers = (options) =>
  build({
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
    logLevel: 'warning',
    inject: [join(root, 'scripts', 'browser-buffer.mjs')],
    plugins: [browserSources],
    metafile: true,
    ...options,
  })

// How esbuild bundles sources for browsers: a file `NAME-browser.ts` takes the place of `NAME.ts` beside it,
// `Buffer` comes from the package of that name, and what only proxies load (`import()` below src/policies,
// src/backends and src/auth) is left out.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '..')

const browserSources = {
  name: 'browser-sources',
  setup(builder) {
    builder.onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ path, resolveDir, kind }) => {
      const file = join(resolveDir, path)
      if (kind === 'dynamic-import' && /\/src\/(policies|backends|auth)\//.test(file)) {
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

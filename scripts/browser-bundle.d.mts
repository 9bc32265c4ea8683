import type { BuildOptions, BuildResult } from 'esbuild'

export function bundleForBrowsers<Options extends BuildOptions>(
  options: Options,
): Promise<BuildResult<Options & { metafile: true }>>

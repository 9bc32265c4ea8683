// Where images are published.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { root } from './app-tree.mjs'

/** The registry from which the chart installs unless a value names another. */
export const { registry } = parse(
  readFileSync(join(root, 'charts/sluice/values.yaml'), 'utf8'),
).image

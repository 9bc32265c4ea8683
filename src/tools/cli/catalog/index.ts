/** The commands `sluice catalog import`, `show` and `check`, and their options. */
import { type Command, Option } from 'commander'
import { collect, manifests, modelCatalogs, recordDir } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { CheckOptions } from './check.ts'
import type { ImportOptions } from './import.ts'
import type { ShowOptions } from './show.ts'

export function addCatalog(program: Command): void {
  const catalog = program
    .command('catalog')
    .description('what is known of language models: rules of requests, limits and prices')
  catalog
    .command('import <file>')
    .description('make a catalog of a public list of models')
    .addOption(
      new Option('--from <list>', 'form of the list')
        .choices(['litellm', 'models.dev', 'openrouter'])
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--provider <id>', 'only models of this provider; may be repeated').argParser(
        collect,
      ),
    )
    .option('-o, --output <path>', 'file for the catalog, - for standard output', '-')
    .action(async (file: string, options: ImportOptions) => {
      const { importCatalog } = await import('./import.ts')
      process.exitCode = await importCatalog(file, options, processOutput)
    })
  catalog
    .command('show <model>')
    .description('show what is known of a model')
    .option('--provider <id>', 'provider that serves the model (default: all that list it)')
    .addOption(modelCatalogs())
    .action(async (model: string, options: ShowOptions) => {
      const { showModel } = await import('./show.ts')
      process.exitCode = await showModel(model, options, processOutput)
    })
  catalog
    .command('check')
    .description(
      'list models in use that no catalog knows, and what is wrong in catalogs; exit with 1 if there are any',
    )
    .addOption(manifests('manifests whose models are checked; may be repeated'))
    .addOption(recordDir('folder with decision records whose models are checked'))
    .addOption(modelCatalogs())
    .action(async (options: CheckOptions) => {
      const { checkCatalog } = await import('./check.ts')
      process.exitCode = await checkCatalog(options, processOutput)
    })
}

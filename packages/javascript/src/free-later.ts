interface Disposable {
  dispose(): void
}

/** Not every version of workerd has it. There, memory is freed when objects are disposed. */
const registry =
  typeof FinalizationRegistry === 'undefined'
    ? undefined
    : new FinalizationRegistry<Disposable>((resource) => resource.dispose())

/** Disposes a resource of the core when its owner is collected. */
export function freeLater<Resource extends Disposable>(
  owner: object,
  resource: Resource,
): Resource {
  registry?.register(owner, resource)
  return resource
}

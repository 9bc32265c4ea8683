export function isVersion(name: string): boolean
export function placePages(built: string, folder: string, version: string | undefined): void

/** The daemon that has it does what is done once for a factory: commands of operators, and the deletion of old rows. */
export const factoryItem = 'factory';
export const queueItem = (queue: string) => `queue ${queue}`;
export const sourceItem = (kind: string) => `source ${kind}`;

/** The queue that an item is. */
export function queueOf(item: string): string | undefined {
  return item.startsWith(queueItem('')) ? item.slice(queueItem('').length) : undefined;
}

/** The kind of the source whose life an item is. */
export function sourceOf(item: string): string | undefined {
  return item.startsWith(sourceItem('')) ? item.slice(sourceItem('').length) : undefined;
}

/** An object as it is printed or sent. */
export interface PoolObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly [more: string]: unknown;
}

interface Variable {
  readonly name: string;
  value?: string;
}

interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
}

interface Container {
  readonly name: string;
  image: string;
  env?: Variable[];
  volumeMounts?: Mount[];
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
}

export interface Volume {
  readonly name: string;
  readonly secret?: Readonly<Record<string, unknown>>;
}

export interface PodShape {
  readonly containers: Container[];
  volumes?: Volume[];
}

/** As much of the templates' objects as options change; the rest goes through as it is. */
export interface PoolShape {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: {
    replicas?: number;
    resources?: { requests: { storage: string } };
    storageClassName?: string;
    readonly template?: { readonly spec: PodShape };
    readonly ingress?: { readonly from?: object[] }[];
    readonly egress?: { readonly to?: object[] }[];
  };
}

{
  # `nix build path:PATH/TO/SOURCES?dir=packaging`, or a copy of this file beside Cargo.toml with `src = ./.`.
  description = "See what the Linux scheduler did, from a recording by schedviz, trace-cmd or perf";

  inputs.nixpkgs.url = "nixpkgs";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      package = pkgs: pkgs.rustPlatform.buildRustPackage {
        pname = "schedviz";
        version = "0.1.0";
        src = ../.;
        cargoLock.lockFile = ../Cargo.lock;
        buildType = "dist";
        cargoBuildFlags = [ "-p" "schedviz" "--features" "mcp" ];
        # The tests need the repository.
        doCheck = false;
        nativeBuildInputs = [ pkgs.installShellFiles ];
        postInstall = ''
          $out/bin/schedviz manual manual
          installManPage manual/*.1
          installShellCompletion --cmd schedviz --bash manual/schedviz.bash --zsh manual/_schedviz --fish manual/schedviz.fish
        '';
        meta = {
          description = "See what the Linux scheduler did";
          license = with pkgs.lib.licenses; [ mit asl20 ];
          mainProgram = "schedviz";
          platforms = systems;
        };
      };
    in {
      packages = nixpkgs.lib.genAttrs systems (system: { default = package nixpkgs.legacyPackages.${system}; });
    };
}
